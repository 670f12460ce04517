#!/bin/sh
# The command of the installed service, as /usr/local/bin/hearth: root runs it as the service's account, on its data.
if [ "$(id -u)" = 0 ]; then
    exec runuser -u hearth -- env HOME=/var/lib/hearth HEARTH_DATA_DIR=/var/lib/hearth /opt/hearth/.venv/bin/hearth "$@"
fi
exec /opt/hearth/.venv/bin/hearth "$@"
