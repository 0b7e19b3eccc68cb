"""Conversion of values between Python and the JVM: types, predicates, Arrow tables, positions, errors.

No table is loaded here. Each module converts in one direction.
"""
