"""How values travel between Python and the JVM: types, predicates, Arrow tables, positions, errors.

No table is loaded here; every module is a translation in one direction.
"""
