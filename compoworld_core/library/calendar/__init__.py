"""The shared calendar: who meets whom, when and in which room."""
