"""`tableformat serve`: an Iceberg REST catalog over any catalog that this library opens (specs/serve.md).

    request      application.py    paths, access, limits, errors in the form of the specification
    route        routes/           one module for each kind of thing: namespaces, tables, views, transactions, plans
    read         served_tables.py  the head of the table; while deletes are pending, its staged conversion
    write        client_commits.py a client's commit on served metadata becomes a commit of the catalog

Other engines can read every table, because they never see an equality or range delete. Needs the extra
`tableformat[serve]`.
"""
