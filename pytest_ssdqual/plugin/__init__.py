"""Entry point of the pytest plugin: fixtures and hooks; the modules they import implement them.

pytest loads this package in every run of its environment, so it imports nothing heavy. Without --ssd-devices it only
skips hardware tests, and ``gate`` makes a run that consists of nothing else exit with status 5. Its main type is
``session.state.BayRun``, the state of one bay's run, stored in ``config.stash``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin import fixtures, gate
from pytest_ssdqual.plugin.options import declare, settings
from pytest_ssdqual.plugin.stash import COLLECTED, RUN, WRONG_MARKS

if TYPE_CHECKING:
    from pathlib import Path


def pytest_addoption(parser: pytest.Parser) -> None:
    declare.declare(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_ssdqual.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    for line in declare.MARKERS:
        config.addinivalue_line("markers", line)
    config.pluginmanager.register(fixtures, "ssdqual-fixtures")
    gate.register(config)
    if settings.active(config):
        from pytest_ssdqual.plugin.session import controller

        controller.configure(config)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if config.option.ssd_doctor and not config.option.help:
        from pytest_ssdqual.plugin.session import doctor

        return doctor.main(config)
    if not config.option.ssd_spec_schema:
        return None
    settings.print_spec_schema()
    return 0


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    # xdist calls this hook before pytest_configure, so ``fleet.xdist`` has not registered its plugin yet.
    if not settings.active(config):
        return None
    from pytest_ssdqual.plugin.options import inventory

    return inventory.count(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("ssd_array"):
        from pytest_ssdqual.plugin.plan import marks

        bay_run = metafunc.config.stash.get(RUN, None)
        run = bay_run and bay_run.qualification
        try:
            if run and metafunc.definition.get_closest_marker("ssd_figures"):
                from pytest_ssdqual.plugin.plan import published_figures

                published_figures.parametrize(metafunc, run.spec, len(run.bay.drives))
            else:
                of_run = (len(run.bay.drives), run.settings.arrays, run.settings.trace, run.spec) if run else (None,)
                marks.parametrize(metafunc, *of_run)
        except pytest.UsageError as error:  # pytest would report it with its traceback
            metafunc.config.stash.setdefault(WRONG_MARKS, []).append(str(error))


def pytest_itemcollected(item: pytest.Item) -> None:
    if RUN in item.config.stash and item.get_closest_marker("ssd_array"):
        item.config.stash.setdefault(COLLECTED, []).append(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if RUN in config.stash:
        from pytest_ssdqual.plugin.plan import marks

        items[:] = marks.present(items)
        marks.require_known(items, config.getini("markers"), [each.partition("(")[0] for each in declare.MARKERS])
    if any(item.get_closest_marker("ssd_array") for item in items):
        if wrong := config.stash.get(WRONG_MARKS, []):
            raise pytest.UsageError("\n".join(dict.fromkeys(wrong)))
        from pytest_ssdqual.plugin.session import controller

        controller.arrange(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Give tests of shipped suites the same ids in a checkout and in an installed package: CIs compare runs by them."""
    if "suites" not in module_path.parts:
        return None
    from pytest_ssdqual import suites

    path = suites.test_id(module_path)
    if path is None:
        return None
    structured = getattr(parent, "id", None)  # since pytest 9.2
    nodeid: Any = path if structured is None else type(structured)(path=path)
    module: pytest.Module = pytest.Module.from_parent(parent, path=module_path, nodeid=nodeid)
    return module


# First: the hooks of other modules print the plan, and send it to the controller.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    # pytest calls this hook also after wrong marks were refused.
    if RUN in session.config.stash and WRONG_MARKS not in session.config.stash:
        from pytest_ssdqual.plugin.session import controller

        controller.plan(session.config, session.items)


def pytest_report_header(config: pytest.Config) -> list[str]:
    if not config.pluginmanager.hasplugin("ssdqual-controller"):
        return []
    from pytest_ssdqual.plugin.session import controller

    return controller.header(config)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    if RUN not in config.stash or WRONG_MARKS in config.stash:
        return []
    from pytest_ssdqual.plugin.session import controller

    return controller.tell_plan(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    if RUN in item.config.stash and item.get_closest_marker("ssd_array"):
        from pytest_ssdqual.plugin.session import outcome

        outcome.require_judged(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.get_closest_marker("ssd_array"):
        setattr(report, gate.ATTRIBUTE, True)
    if RUN in item.config.stash:
        from pytest_ssdqual.plugin.plan import applicability
        from pytest_ssdqual.plugin.session import outcome

        run = item.config.stash[RUN].qualification
        if outcome.is_concerned(item, call):
            outcome.shape(item, call, report, junit=run.settings.junit_properties)
        if item.get_closest_marker("ssd_array"):
            applicability.classify(item, call, report, run.bay.drives)
    return report
