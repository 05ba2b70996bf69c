#!/bin/bash
# Slurm: TaskProlog=/etc/slurm/torchdoctor.sh (slurm.conf). A task on a node where torch does not
# work says so in its output at once instead of failing an hour later; "print" reaches the task.
set -u
doctor=${TORCHDOCTOR:-/opt/torchdoctor.pyz}
if ! said=$("$doctor" check --no-import --quiet --expect "${TORCHDOCTOR_EXPECT:-cuda}" 2>&1); then
    echo "print torchdoctor on $(hostname): $said"
fi
