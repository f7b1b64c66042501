"""What models say in each of their roles: one file for each role.

A script is a function from a request to a `Reply`, or an object that can be called like one. It keeps no conversation
in mind: what it says follows from the messages of the request. What changes between tests (who fails, what is
malformed) is an argument of its factory. A factory whose arguments are JSON can be named to a `ServerProcess`.
"""
