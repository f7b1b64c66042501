"""The pipeline: a declarative graph of stages, and the engine that runs it on one machine."""
