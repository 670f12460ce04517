"""SQL of the names under which users know files and definitions."""

from __future__ import annotations

import apsw

from gateway.store.rows import column


def paths_named(connection: apsw.Connection, project: str, name: str) -> list[str]:
    """The file at a path; else those whose paths, with or without the suffix, end in it."""
    found = column(
        connection,
        "SELECT path FROM code_files WHERE project = ?1 AND (?2 IN (path, module) "
        "OR '/' || ?2 IN (substr(path, -length(?2) - 1), substr(module, -length(?2) - 1))) ORDER BY path",
        (project, name),
    )
    return [name] if name in found else found


def exported(connection: apsw.Connection, project: str, module: str, name: str) -> list[str]:
    """The qualified names of what a module has imported under a name, or may have with all names of another."""
    return column(
        connection,
        "SELECT DISTINCT iif(t.kind = 'module', t.qualified || '.' || ?3, t.qualified) "
        "FROM code_definitions AS m JOIN code_files AS f ON f.id = m.file AND m.kind = 'module' "
        "JOIN code_sites AS s ON s.file = f.id "
        "AND s.scope = 0 AND s.kind = 'import' JOIN code_edges AS e ON e.site = s.id "
        "JOIN code_definitions AS t ON t.id = e.target "
        "WHERE m.name = ?4 AND f.project = ?1 AND m.qualified = ?2 AND (t.kind = 'module' OR s.name = ?3)",
        (project, module, name, module.rpartition(".")[2]),
    )


def names_like(connection: apsw.Connection, project: str, name: str) -> list[str]:
    """Names of definitions that begin like this one and are about as long."""
    return column(
        connection,
        "SELECT DISTINCT code_definitions.name FROM code_files JOIN code_definitions ON file = code_files.id "
        "WHERE project = ?1 AND kind <> 'lambda' AND lower(substr(code_definitions.name, 1, 1)) = "
        "lower(substr(?2, 1, 1)) AND abs(length(code_definitions.name) - length(?2)) <= 3",
        (project, name),
    )
