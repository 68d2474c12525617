#!/usr/bin/env bash
# Approves a sample plan with a key pair made for this one run, verifies that approval and prints the playbook.
set -euo pipefail

readonly approver='demo-reviewer'

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here plans=$here/plans

usage() {
    cat <<'END'
Usage: run.sh [CASE] [--rollback] [--level l1|l2|l3] [--all]

  without arguments   list the cases, one a line
  CASE                approve plans/CASE.json with a fresh key pair, verify that and print the playbook
  --rollback          print the playbook that undoes the case
  --level LEVEL       how far an action goes whose plan leaves that open (default l2)
  --all               run every case in both directions and print a table
  --help              print this text

The playbook goes to standard output, what happened to standard error. The private key stays in a variable of this
process; pqcota-approve alone gets it, in its environment. It is in no file and on no command line.

Exit status:
  0  done; with --all also where plans leave something out, since some cases are there to show that
  1  refused or failed
  2  wrong usage, or no such case
  3  done, but the plan leaves something out: the status of pqcota-provision, passed on
END
}

say() {
    printf 'run.sh: %s\n' "$*" >&2
}

wrong_usage() {
    say "$* Run run.sh --help for what it accepts."
    exit 2
}

find_commands() {
    if command -v pqcota-provision >/dev/null; then
        return
    fi
    PATH=$here/../.venv/bin:$PATH
    if ! command -v pqcota-provision >/dev/null; then
        say 'pqcota-provision is neither on PATH nor in .venv/bin. Run make demo once, or pip install the project.'
        exit 1
    fi
}

case_names() {
    local plan
    for plan in "$plans"/*.json; do
        basename "$plan" .json
    done
}

list_cases() {
    local name
    while read -r name; do
        printf '%-33s%s\n' "$name" "$(sed -n 's/^  "scope": "\(.*\)",$/\1/p' "$plans/$name.json")"
    done < <(case_names)
}

make_key_pair() {
    local lines
    # A variable that the caller exported would hand the key to every child.
    unset PQCOTA_SIGN_KEY PQCOTA_VERIFY_KEY
    lines=$(pqcota-keygen)
    eval "$(printf '%s\n' "$lines" | grep '^PQCOTA_')"
    export PQCOTA_APPROVAL_KEYS="$approver=$PQCOTA_VERIFY_KEY"
    say "made a key pair for $approver, for this run only"
}

approve() {
    PQCOTA_APPROVAL_KEY=$PQCOTA_SIGN_KEY pqcota-approve --approver "$approver" "$plans/$1.json"
}

provision() {
    local signed=$1
    shift
    printf '%s\n' "$signed" | pqcota-provision "$@" -
}

run_case() {
    local name=$1 signed status=0
    shift
    signed=$(approve "$name")
    provision "$signed" "$@" || status=$?
    case $status in
        0) say 'pqcota-provision ended in 0: done, and the plan leaves nothing out' ;;
        3) say 'pqcota-provision ended in 3: done, but the plan leaves something out; each blank above says what' ;;
        *) say "pqcota-provision ended in $status: no playbook" ;;
    esac
    return "$status"
}

# Reads what pqcota-provision said, and prints its notices as one cell.
notices_of() {
    awk '
        $1 == "pqcota-provision:" && ($2 == "blank" || $2 == "advice") {
            sub(/:$/, "", $3)
            cell = cell (cell == "" ? "" : ", ") $2 " " $3
        }
        END { print (cell == "" ? "-" : cell) }
    '
}

run_all() {
    local name signed said direction options status worst=0
    printf '%-33s%-11s%-8s%s\n' CASE DIRECTION STATUS NOTICES
    while read -r name; do
        if ! signed=$(approve "$name" 2>/dev/null); then
            # Once more, for what it says.
            approve "$name" >/dev/null || say "$name is not approved"
            worst=1
            continue
        fi
        for direction in forward rollback; do
            options=("$@")
            if [[ $direction == rollback ]]; then
                options+=(--rollback)
            fi
            status=0
            said=$(provision "$signed" "${options[@]}" 2>&1 >/dev/null) || status=$?
            printf '%-33s%-11s%-8s%s\n' "$name" "$direction" "$status" "$(printf '%s\n' "$said" | notices_of)"
            if ((status != 0 && status != 3)); then
                say "$name, $direction: $said"
                worst=1
            fi
        done
    done < <(case_names)
    return "$worst"
}

main() {
    local name='' all='' rollback='' level=''
    while (($# > 0)); do
        case $1 in
            --help) usage; exit 0 ;;
            --all) all=yes ;;
            --rollback) rollback=yes ;;
            --level) (($# > 1)) || wrong_usage '--level needs a value.'; level=$2; shift ;;
            -*) wrong_usage "there is no option $1." ;;
            *) [[ -z $name ]] || wrong_usage "one case at a time, not $name and $1."; name=$1 ;;
        esac
        shift
    done

    local options=()
    [[ -z $level ]] || options+=(--level "$level")
    if [[ $all ]]; then
        [[ -z $name ]] || wrong_usage "--all runs every case; $name is one of them."
        [[ -z $rollback ]] || wrong_usage '--all runs both directions already.'
        find_commands
        make_key_pair
        run_all "${options[@]}"
    elif [[ $name ]]; then
        [[ $name != */* && -f $plans/$name.json ]] || wrong_usage "there is no case $name; run.sh lists them."
        if [[ $rollback ]]; then
            options+=(--rollback)
        fi
        find_commands
        make_key_pair
        run_case "$name" "${options[@]}"
    else
        [[ -z $rollback$level ]] || wrong_usage 'name a case.'
        list_cases
    fi
}

main "$@"
