"""Tasks that prove on the node, changing nothing, that what was placed has its effect (``--verify``)."""

from __future__ import annotations

from collections.abc import Iterable

from pqcota_provision.plan.model import CryptoRuntime, RemediationKind
from pqcota_provision.playbook.fragments.jca import jvm_options, known_provider_class
from pqcota_provision.playbook.layout import ActionLayout
from pqcota_provision.playbook.paths import JAVA_VARIABLE, OPENSSL_VARIABLE, provider_of
from pqcota_provision.playbook.tasks import NOT_IN_CHECK_MODE, literal, shared, task
from pqcota_provision.playbook.yamlwriter import Item, Unsafe, Value

_OPENSSL = f"{{{{ {OPENSSL_VARIABLE} | default('openssl') }}}}"
_JAVA = f"{{{{ {JAVA_VARIABLE} | default('java') }}}}"

# A key store type that nobody has: the search for it makes the JVM load every provider of its list.
_NO_SUCH_STORE = "PQCOTA-NONE"


def verify_action(item: ActionLayout) -> tuple[Item, ...]:
    """Return the tasks that prove the effect of the files an action places; none where it places none."""
    action = item.action
    if not item.files:
        return ()
    injects = action.kind == RemediationKind.PROVIDER_INJECT
    if action.crypto_runtime == CryptoRuntime.OPENSSL:
        # A hand-written fragment may call the provider's section as it likes.
        provider = _listed_name(provider_of(action)) if injects and not action.config_artifact else ""
        return _verify_openssl(item.files[0].path, provider, injects)
    arguments_path = item.files[1].path
    properties = tuple(option.removeprefix("-D") for option in jvm_options(action) if option.startswith("-D"))
    provider_class = known_provider_class(action) if injects else ""
    return _verify_jvm(arguments_path, properties, provider_class)


def _listed_name(provider: str) -> str:
    """Return the name under which OpenSSL lists a provider: without what stands before the first dot."""
    return provider.partition(".")[2] or provider


def _ask(name: str, argv: list[str | Unsafe], register: str, environment: dict[str, Value] | None = None) -> Item:
    """Return a task whose command may fail: the check after it says what that means."""
    return task(
        name,
        "command",
        {"argv": argv},
        environment=environment or {},
        register=register,
        changed_when=False,
        failed_when=False,
        when=NOT_IN_CHECK_MODE,
    )


def _check(name: str, that: list[str], message: str, **variables: Value) -> Item:
    arguments: dict[str, Value] = {"that": that, "fail_msg": message, "quiet": True}
    return task(name, "assert", arguments, vars=variables, when=NOT_IN_CHECK_MODE)


@shared
def _verify_openssl(fragment_path: str, provider: str, injects: bool) -> Iterable[Item]:
    wanted, needs = (
        (["pqcota_release is version('3.0', '>=')", "pqcota_release is version('3.5', '<')"], "3.0 to 3.4")
        if injects
        else (["pqcota_release is version('3.5', '>=')"], "3.5 or later")
    )
    yield _ask("Ask OpenSSL for its version", [_OPENSSL, "version"], "pqcota_openssl_version")
    yield _check(
        "Check that OpenSSL is there",
        ["pqcota_openssl_version.rc | default(1) == 0"],
        f"{_OPENSSL} does not run on this node; install it, or name the one to ask with -e {OPENSSL_VARIABLE}=PATH.",
    )
    yield _check(
        "Check that this OpenSSL fits the fragment",
        wanted,
        f"The fragment {fragment_path} needs OpenSSL {needs} on this node, "
        "which has: {{ pqcota_openssl_version.stdout }}.",
        # The library counts, not the command line tool; it is named last.
        pqcota_release="{{ (['0'] + (pqcota_openssl_version.stdout | default('') "
        "| regex_findall('OpenSSL ([0-9]+[.][0-9]+[.][0-9]+)'))) | last }}",
    )
    environment: dict[str, Value] = {"OPENSSL_CONF": Unsafe(fragment_path)}
    yield _ask(
        f"List the providers under {fragment_path}",
        [_OPENSSL, "list", "-providers"],
        "pqcota_openssl_providers",
        environment,
    )
    yield _ask(
        f"Make a TLS context under {fragment_path}",
        [_OPENSSL, "ciphers"],
        "pqcota_openssl_ciphers",
        environment,
    )
    active = ["'default' in pqcota_active_providers"]
    if injects:
        active.append(
            f"{literal(provider)} in pqcota_active_providers" if provider else "pqcota_active_providers | length > 1"
        )
    plan_provider = f", {provider or 'the provider of the plan'} too," if injects else ""
    yield _check(
        f"Check what OpenSSL makes of {fragment_path}",
        [
            "pqcota_openssl_providers.rc | default(1) == 0",
            *active,
            "'status: inactive' not in pqcota_openssl_providers.stdout",
            "pqcota_openssl_ciphers.rc | default(1) == 0",
        ],
        f"Under {fragment_path} OpenSSL must have the default provider active{plan_provider} and make TLS contexts. "
        "Active are: {{ pqcota_active_providers | join(', ') | default('none', true) }}. "
        "{{ pqcota_openssl_providers.stderr | default('', true) }}"
        "{{ pqcota_openssl_ciphers.stderr | default('', true) }}",
        # Names stand alone on lines indented by two; what belongs to them is indented further.
        pqcota_active_providers="{{ pqcota_openssl_providers.stdout_lines | default([]) "
        "| select('match', '^ {2}[^ ]') | map('trim') | list }}",
    )


@shared
def _verify_jvm(arguments_path: str, properties: tuple[str, ...], provider_class: str) -> Iterable[Item]:
    yield _ask(
        f"Start a JVM with {arguments_path}",
        [_JAVA, Unsafe(f"@{arguments_path}"), "-XshowSettings:properties", "-version"],
        "pqcota_jvm",
    )
    shown = [f"{literal(' = '.join(option.split('=', 1)))} in pqcota_jvm.stderr | default('')" for option in properties]
    yield _check(
        "Check that a JVM is there",
        ["pqcota_jvm.rc | default(1) == 0"],
        f"{_JAVA} @{arguments_path} does not start on this node; it has to be version 9 or later. "
        f"Install one, or name the one to ask with -e {JAVA_VARIABLE}=PATH. "
        "{{ pqcota_jvm.stderr | default('', true) }}",
    )
    if shown:
        yield _check(
            f"Check that the JVM obeys {arguments_path}",
            shown,
            f"{_JAVA} on this node starts under @{arguments_path}, but without the settings of the plan.",
        )
    if not provider_class:
        return
    yield _ask(
        f"Let the JVM load every provider under {arguments_path}",
        [
            _JAVA,
            Unsafe(f"@{arguments_path}"),
            "-Djava.security.debug=jca",
            "-verbose:class",
            "sun.security.tools.keytool.Main",
            "-list",
            "-storetype",
            _NO_SUCH_STORE,
            "-keystore",
            "NONE",
        ],
        "pqcota_jvm_providers",
    )
    name = literal(provider_class)
    yield _check(
        "Check that the provider of the plan is loaded",
        [
            f"({name} ~ ' source:') in pqcota_jvm_output",
            f"('Error loading provider ' ~ {name}) not in pqcota_jvm_output",
        ],
        f"The JVM does not load the provider {provider_class} under @{arguments_path}: "
        "its class is not in the staged JAR, or it failed to start.",
        pqcota_jvm_output="{{ pqcota_jvm_providers.stdout | default('') }}"
        "{{ pqcota_jvm_providers.stderr | default('') }}",
    )
