"""A whole file of a notify server: every handler, policies, roles, and all sections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from seamark.config import Settings, load
from tests.access.tokens import SECRET

FULL = f"""
application:
  host: 127.0.0.1
  port: 8000
  base_url: http://aviso.example
  static_files_path: /app/static
watch_endpoint:
  sse_heartbeat_interval_sec: 7
  connection_max_duration_sec: 600
  replay_batch_size: 50
  max_historical_notifications: 200
  replay_batch_delay_ms: 5
  concurrent_notification_processing: 15
logging: {{level: warn, format: json}}
metrics: {{enabled: false}}
auth:
  enabled: true
  mode: trusted_proxy
  jwt_secret: {SECRET}
  admin_roles: {{ocean: [admin]}}
notification_schema_strict: true
notification_schema:
  mars:
    topic: {{base: mars, key_order: [class, expver, date, time, step, level, region]}}
    identifier:
      class: {{type: StringHandler, max_length: 2, required: true, description: two letters}}
      expver: {{type: ExpverHandler, default: "0001", required: false}}
      date: {{type: DateHandler, canonical_format: "%Y%m%d", required: false}}
      time: {{type: TimeHandler, required: false}}
      step: {{type: IntHandler, range: [0, 100000], required: false}}
      level: {{type: FloatHandler, range: [0.0, 10.0], required: false}}
      region: {{type: EnumHandler, values: [north, south], required: false}}
    payload: {{required: true}}
    storage_policy:
      {{retention_time: 7d, max_messages: 1000, max_size: 10Mi, allow_duplicates: true, compression: true}}
    auth:
      required: true
      read_roles: {{ocean: [reader], desert: ["*"]}}
      write_roles: {{ocean: [writer]}}
  public:
    topic: {{base: public, key_order: [n]}}
    identifier: {{n: {{type: IntHandler, required: true}}}}
  closed:
    topic: {{base: closed, key_order: [n]}}
    identifier: {{n: {{type: IntHandler, required: true}}}}
    auth: {{required: true}}
  areas:
    topic: {{base: areas, key_order: [date]}}
    identifier:
      date: {{type: DateHandler, required: false}}
      polygon: {{type: PolygonHandler, required: true}}
    storage_policy: {{allow_duplicates: false}}
    auth: {{required: false}}
"""


def document(**changes: Any) -> dict[str, Any]:
    """The whole file, with sections replaced; None leaves one out."""
    whole = yaml.safe_load(FULL) | changes
    return {name: value for name, value in whole.items() if value is not None}


def written(place: Path, content: dict[str, Any] | str = FULL) -> Path:
    file = place / "config.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return file


def loaded(place: Path, content: dict[str, Any] | str = FULL, **environ: str) -> Settings:
    return load(environ=environ, file=written(place, content), directory=place)
