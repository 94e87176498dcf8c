"""The bill of materials, read by the library of those who made the format."""

import json
import pathlib
import subprocess

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = pathlib.Path(__file__).resolve().parents[2]


def bill(path):
    subprocess.run(["cargo", "xtask", "sbom", "--output", path], cwd=ROOT, check=True, capture_output=True)
    return path.read_text()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return bill(tmp_path_factory.mktemp("sbom") / "reveille.cdx.json")


def test_the_bill_of_materials_is_cyclonedx(text):
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_the_same_commit_gives_the_same_bill(text, tmp_path):
    assert bill(tmp_path / "again.cdx.json") == text


def test_every_component_can_be_looked_up_and_is_needed_by_another(text):
    document = json.loads(text)
    components = {component["bom-ref"]: component for component in document["components"]}
    for reference, component in components.items():
        assert component["licenses"], reference
        is_ours = component["name"].startswith("reveille-")
        assert is_ours or component["purl"] == reference, reference
        assert is_ours or component["name"] == "sqlite" or component["hashes"][0]["alg"] == "SHA-256", reference
    needed = {reference for entry in document["dependencies"] for reference in entry["dependsOn"]}
    assert needed == set(components)
    assert document["metadata"]["component"]["name"] == "reveille"


def test_the_bill_tells_what_is_in_the_binary_from_what_built_it(text):
    scopes = {component["name"]: component["scope"] for component in json.loads(text)["components"]}
    assert scopes["tokio"] == scopes["sqlite"] == scopes["reveille-core"] == "required"
    assert scopes["cc"] == scopes["serde_derive"] == "excluded"
    # What only tests need is not there at all.
    assert "proptest" not in scopes and "reveille-test-kit" not in scopes
