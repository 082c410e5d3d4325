"""Tracing: a call of a kernel in; what each thread of one threadgroup did, statement by statement, out."""
