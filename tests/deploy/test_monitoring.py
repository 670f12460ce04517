"""Alert rules and dashboard: valid, and about metrics that the gateway really has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from gateway.base.supervised import TaskHealth
from gateway.config.settings import ServerSettings
from gateway.inference.interface import HostHealth
from gateway.telemetry.metrics import Metrics, model_host, tasks
from tests.conftest import ROOT
from tests.deploy.debian import need

RULES = ROOT / "deploy" / "prometheus" / "hearth.rules.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "hearth.json"
# Of PromQL itself; every other word outside braces and quotes is a metric.
WORDS = {"sum", "by", "on", "and", "rate", "increase", "histogram_quantile", "label_values"}
FROM_PROMETHEUS = {"up"}


def promtool(*arguments: str | Path, folder: Path = ROOT) -> None:
    command = [need("promtool", "prometheus"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def alerts() -> dict[str, dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for name, rule in alerts().items():
        yield name, rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"].replace(", instance)", ")")


def exported() -> dict[str, set[str]]:
    """The labels of every series that the gateway exports, by name. Counters and histograms have several names."""
    metrics = Metrics()
    metrics.scrape(lambda: model_host(HostHealth(state="ready")))
    metrics.scrape(lambda: tasks([TaskHealth("memory-worker", "running", 0, None)]))
    metrics.request_done("/ask", "POST", 200, 0.1)
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize(("name", "expression"), list(expressions()))
def test_expressions_are_about_what_is_exported(name: str, expression: str) -> None:
    known = exported() | {name: set[str]() for name in FROM_PROMETHEUS}
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\((?:instance|le|status|route|job|, )+\)", "", expression)
    assert set(re.findall(r"[a-z_]\w+", bare)) - WORDS <= set(known)
    for metric, matchers in re.findall(r"([a-z_]\w+)\{([^}]*)\}", expression):
        labels = set(re.findall(r"(\w+)\s*=~?", matchers))
        assert labels <= known[metric] | {"job", "instance"}, metric
        assert 'job="hearth"' in matchers


def test_a_made_up_metric_is_found_out() -> None:
    with pytest.raises(AssertionError):
        test_expressions_are_about_what_is_exported("x", 'rate(no_such_metric_total{job="hearth"}[5m])')
    with pytest.raises(AssertionError):
        test_expressions_are_about_what_is_exported("x", 'num_requests_running{job="hearth", color="red"}')


def test_the_rules_are_valid_and_fire_as_meant() -> None:
    promtool("check", "rules", RULES)
    promtool("test", "rules", "hearth.tests.yml", folder=RULES.parent)
    tests = yaml.safe_load((RULES.parent / "hearth.tests.yml").read_text())["tests"]
    healthy, broken = tests
    assert {each["alertname"] for each in healthy["alert_rule_test"]} == set(alerts())
    fired = {each["labels"] for each in broken["promql_expr_test"][0]["exp_samples"]}
    assert fired == {f'{{alertname="{name}"}}' for name in alerts()}


def test_the_scrape_configuration_is_valid(tmp_path: Path) -> None:
    shutil.copytree(RULES.parent, tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/", f"{tmp_path}/"))
    (tmp_path / "hearth.key").write_text("key")
    promtool("check", "config", tmp_path / "prometheus.yml")
    [job] = yaml.safe_load(text)["scrape_configs"]
    server = ServerSettings()
    assert job["static_configs"] == [{"targets": [f"{server.host}:{server.port}"]}]


def test_the_dashboard_s_expressions_are_valid(tmp_path: Path) -> None:
    """As rules, with Grafana's own variables filled in."""
    rules = [
        {"record": f"panel{number}", "expr": target["expr"].replace("$__rate_interval", "1m")}
        for number, target in enumerate(target for panel in panels() for target in panel["targets"])
    ]
    assert len(rules) > 15
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", tmp_path / "rules.yml")


def test_panels_neither_overlap_nor_share_ids() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_the_guide_explains_every_alert() -> None:
    guide = (ROOT / "docs" / "operations.md").read_text()
    explained = re.findall(r"^\| `(Hearth\w+)` \|", guide, re.MULTILINE)
    assert explained == list(alerts())
