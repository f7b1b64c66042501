"""The container entry point of the stage; see `jobs.job`."""

from jobs.job import main

if __name__ == "__main__":
    main("evaluate")
