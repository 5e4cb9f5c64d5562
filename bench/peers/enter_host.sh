#!/bin/sh
# What mpirun and mpiexec call instead of ssh between test hosts: enter_host.sh HOST COMMAND...
# As with ssh, the words of the command are joined and given to a shell.
here=$(dirname "$(readlink -f "$0")")
host=$1
shift
exec "$here/../../scripts/test_hosts.sh" exec "$host" /bin/sh -c "$*"
