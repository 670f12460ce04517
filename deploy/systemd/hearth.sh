#!/bin/sh
# The command of the installed service, as /usr/local/bin/hearth: root runs it as the service's account, on its data.
if [ "$(id -u)" = 0 ]; then
    case " $* " in
    # This one looks at units and at other accounts' files, and changes nothing.
    " doctor "*"--systemd "*) exec env HEARTH_DATA_DIR=/var/lib/hearth /opt/hearth/.venv/bin/hearth "$@" ;;
    esac
    exec runuser -u hearth -- env HOME=/var/lib/hearth HEARTH_DATA_DIR=/var/lib/hearth /opt/hearth/.venv/bin/hearth "$@"
fi
exec /opt/hearth/.venv/bin/hearth "$@"
