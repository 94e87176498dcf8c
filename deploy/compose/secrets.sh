#!/bin/sh
# Makes the passwords of compose.yaml in ./secrets, and the users of Redis that have them. What is there stays.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
# The folder keeps other users of this machine out; containers see the files alone, and run as other users.
umask 022

# A letter first: nats-server takes a variable that begins like a number for one.
password() {
    [ -s "secrets/$1" ] || printf 'p%s' "$(od -An -tx1 -N24 /dev/urandom | tr -d ' \n')" >"secrets/$1"
    cat "secrets/$1"
}

for role in reveille worker operator; do
    password "redis.$role" >/dev/null
done
sed -e "s/>change-me-reveille/>$(password redis.reveille)/" \
    -e "s/>change-me-worker/>$(password redis.worker)/" \
    -e "s/>change-me-operator/>$(password redis.operator)/" ../redis/users.acl >secrets/users.acl
password postgres.reveille >/dev/null
cat >secrets/nats.env <<END
REVEILLE_NATS_PASSWORD=$(password nats.reveille)
ECHO_1_NATS_PASSWORD=$(password nats.echo-1)
RUST_1_NATS_PASSWORD=$(password nats.rust-1)
SUBMITTER_NATS_PASSWORD=$(password nats.submitter)
END
echo "REVEILLE_OPERATOR_KEY=$(password operator.key)" >secrets/reveille.env
echo "secrets/ has the passwords; the operator key is in secrets/operator.key"
