"""The distributed engine: the stage graph as Argo workflows, built with Hera. Needs the extra `cluster`.

It holds no stage logic. Each pod runs one of the commands in `jobs/`, and what they commit decides what is left to do.
"""
