"""Every bound in one place: name, value, unit and why. Code cites a bound by name, never by number."""

from __future__ import annotations

from typing import NamedTuple

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class Limit(NamedTuple):
    """One bound. `value` is what code uses; the rest is documentation that a test keeps complete."""

    name: str
    value: int
    unit: str
    why: str


LIMITS: dict[str, Limit] = {}


def _limit(name: str, value: int, unit: str, why: str) -> int:
    assert name not in LIMITS
    LIMITS[name] = Limit(name, value, unit, why)
    return value


# -- records and batches
RECORDS_PER_APPEND_MAX = _limit(
    "RECORDS_PER_APPEND_MAX", 10_000, "records", "one append is one atomic unit and must fit a commit"
)
RECORD_BYTES_MAX = _limit("RECORD_BYTES_MAX", 1 * MIB, "bytes", "payload plus meta of one record")
META_BYTES_MAX = _limit("META_BYTES_MAX", 16 * KIB, "bytes", "meta is for routing, not for payload")
STAMP_BYTES_MAX = _limit(
    "STAMP_BYTES_MAX",
    4 * KIB,
    "bytes",
    "what Seamark adds to the meta of a copy (where it came from), beyond what a client may bring",
)
META_KEYS_MAX = _limit("META_KEYS_MAX", 64, "keys", "of a topic record's meta, for the same reason")
TAG_BYTES_MAX = _limit("TAG_BYTES_MAX", 256, "bytes", "tags are matched byte by byte")
NODE_BYTES_MAX = _limit("NODE_BYTES_MAX", 128, "bytes", "a node names a writer")
KEY_BYTES_MAX = _limit(
    "KEY_BYTES_MAX", 256, "bytes", "idempotency keys are part of a store key, which LMDB holds to 511 bytes"
)
SUBJECT_TOKENS_MAX = _limit("SUBJECT_TOKENS_MAX", 64, "tokens", "a subject is a short path, not a document")
SUBJECT_BYTES_MAX = _limit("SUBJECT_BYTES_MAX", 4 * KIB, "bytes", "all tokens of a subject together")
GEOMETRY_BYTES_MAX = _limit("GEOMETRY_BYTES_MAX", 256 * KIB, "bytes", "a polygon of some ten thousand vertices")
GEOMETRY_BYTES_PER_APPEND_MAX = _limit(
    "GEOMETRY_BYTES_PER_APPEND_MAX",
    2 * MIB,
    "bytes",
    "a polygon takes time to check, during which nobody else is served",
)
STREAM_NAME_BYTES_MAX = _limit("STREAM_NAME_BYTES_MAX", 280, "bytes", "surface prefix plus the longest topic name")
STREAMS_MAX = _limit("STREAMS_MAX", 100_000, "streams", "every stream costs about a kilobyte of memory")
SPAN_MS_MAX = _limit(
    "SPAN_MS_MAX", 100 * 365 * 86_400_000, "ms", "a hundred years; added to a time in nanoseconds it still fits 64 bits"
)
SEQ_MAX = _limit("SEQ_MAX", 2**63 - 1, "seq", "fits a signed 64-bit integer in every client language")

# -- the log's own units
CHUNK_RECORDS_MAX = _limit("CHUNK_RECORDS_MAX", 256, "records", "one stored value; also the unit of a page")
CHUNK_BYTES_MAX = _limit("CHUNK_BYTES_MAX", 64 * KIB, "bytes", "keeps overflow page runs short")
COMMIT_RECORDS_MAX = _limit(
    "COMMIT_RECORDS_MAX", 100_000, "records", "one group commit; what arrived beyond it waits for the next"
)
COMMIT_BYTES_MAX = _limit("COMMIT_BYTES_MAX", 64 * MIB, "bytes", "one group commit")
PENDING_BYTES_MAX = _limit(
    "PENDING_BYTES_MAX",
    256 * MIB,
    "bytes",
    "acknowledged but not yet durable, and waiting appends; beyond it writers are refused",
)
PURGE_RECORDS_MAX = _limit("PURGE_RECORDS_MAX", 10_000, "records", "physical deletion per transaction")
RESERVE_RECORDS = _limit(
    "RESERVE_RECORDS",
    1_024,
    "records",
    "seqs reserved ahead on disk, so that an acknowledged seq is never issued twice after a crash",
)
PAGE_RECORDS_DEFAULT = _limit("PAGE_RECORDS_DEFAULT", 256, "records", "one read")
PAGE_RECORDS_MAX = _limit("PAGE_RECORDS_MAX", 10_000, "records", "one read; 10,000 suits the lake's pages")
PAGE_BYTES_DEFAULT = _limit("PAGE_BYTES_DEFAULT", 1 * MIB, "bytes", "one read")
PAGE_BYTES_MAX = _limit("PAGE_BYTES_MAX", 8 * MIB, "bytes", "one read")
MAP_BYTES = _limit("MAP_BYTES", 1024 * GIB, "bytes", "LMDB's address space: sparse, never resized while open")
HEADROOM_BYTES = _limit(
    "HEADROOM_BYTES",
    1 * MIB,
    "bytes",
    "zeros written ahead of the store's end: a millisecond, during which nobody is served, for forty small commits",
)
STORE_READERS_MAX = _limit("STORE_READERS_MAX", 1_024, "readers", "LMDB reader slots over all processes")
LOST_RANGES_MAX = _limit(
    "LOST_RANGES_MAX",
    1_024,
    "ranges",
    "interior losses kept apart for one stream; beyond it the oldest are merged into the floor",
)
SCAN_RECORDS_MAX = _limit(
    "SCAN_RECORDS_MAX",
    20_000,
    "records",
    "examined by a read before it lets the loop go on: a filter that rejects everything must not stop the server",
)
PUT_KEY_BYTES_MAX = _limit(
    "PUT_KEY_BYTES_MAX", 400, "bytes", "with its space it is a store key, which LMDB holds to 511 bytes"
)
PUT_SPACE_BYTES_MAX = _limit("PUT_SPACE_BYTES_MAX", 64, "bytes", "a space names a kind of thing")
SETTINGS_EXTRA_BYTES_MAX = _limit(
    "SETTINGS_EXTRA_BYTES_MAX", 64 * KIB, "bytes", "a surface's own settings; held in memory for every stream"
)
COLUMN_BLOCK_RECORDS = _limit(
    "COLUMN_BLOCK_RECORDS",
    16_384,
    "records",
    "one block of columns; what is newer than the last whole block is read through",
)
COLUMN_STEP_RECORDS = _limit(
    "COLUMN_STEP_RECORDS", 1_024, "records", "taken into columns before the loop goes on: a few milliseconds"
)
COLUMN_BLOCK_COST = _limit(
    "COLUMN_BLOCK_COST", 128, "records", "what skimming a block counts as against SCAN_RECORDS_MAX"
)
READ_CACHE_BYTES = _limit(
    "READ_CACHE_BYTES",
    32 * MIB,
    "bytes",
    "chunks that several readers asked for, kept decoded, with what surfaces made of them",
)
READ_CACHE_RECORDS_MIN = _limit(
    "READ_CACHE_RECORDS_MIN", 8, "records", "of a chunk worth keeping: a smaller one is decoded as fast as it is found"
)
READ_CACHE_ASKS_MIN = _limit(
    "READ_CACHE_ASKS_MIN",
    3,
    "reads",
    "of one chunk before it is kept: one reader that passes through may meet it twice, at the seam of two pages",
)
READ_CACHE_ASKED_MAX = _limit(
    "READ_CACHE_ASKED_MAX", 8_192, "chunks", "whose reads are counted; those asked for longest ago are forgotten"
)
READ_CACHE_FORMS_MAX = _limit(
    "READ_CACHE_FORMS_MAX", 4, "forms", "of one chunk that are kept: readers with and without meta, tags or data"
)
KEYS_PURGED_PER_COMMIT = _limit(
    "KEYS_PURGED_PER_COMMIT", 256, "keys", "expired idempotency keys that one commit takes along"
)

# -- matching
CONSTRAINT_VALUES_MAX = _limit("CONSTRAINT_VALUES_MAX", 1_024, "values", "operands of one `in`")
POLYGON_VERTICES_MAX = _limit("POLYGON_VERTICES_MAX", 10_000, "vertices", "one ring")
RING_PAIRS_MAX = _limit(
    "RING_PAIRS_MAX",
    1_000_000,
    "pairs",
    "of a ring's segments that lie beside each other: some ten milliseconds to find out whether any two cross",
)
MATCH_TAIL_MAX = _limit(
    "MATCH_TAIL_MAX", 64, "filters", "changes, at least, before a tree or a column is rebuilt; then a share of its size"
)
MATCH_LINEAR_MAX = _limit("MATCH_LINEAR_MAX", 8, "filters", "a smaller bucket is faster one by one than in columns")
MATCH_TREE_MIN = _limit("MATCH_TREE_MIN", 4_096, "filters", "below it scanning boxes is as fast as a spatial tree")
MATCH_EXPAND_MAX = _limit("MATCH_EXPAND_MAX", 32, "buckets", "one filter's `in` values spread over as many buckets")
MATCH_FACETS_MAX = _limit(
    "MATCH_FACETS_MAX", 256, "facets", "hash look-ups of one record; further shapes of filter share single-token facets"
)
MATCH_GROUPS_MAX = _limit("MATCH_GROUPS_MAX", 8, "groups", "column sets of one bucket, each scanned for each record")
MATCH_SHAPE_CACHE_BYTES = _limit(
    "MATCH_SHAPE_CACHE_BYTES", 4 * MIB, "bytes", "polygon texts whose parsed shapes are kept"
)

# -- notify
SECOND_TEXTS_MAX = _limit("SECOND_TEXTS_MAX", 1_024, "texts", "written forms of seconds that are kept")
POINT_CLOUD_POINTS_MAX = _limit("POINT_CLOUD_POINTS_MAX", 10_000, "points", "one point cloud; the contract names it")
POINT_CLOUD_BYTES_MAX = _limit(
    "POINT_CLOUD_BYTES_MAX", 60 * KIB, "bytes", "a point cloud as compact JSON; the contract names it"
)
HISTORY_BURST_RECORDS = _limit(
    "HISTORY_BURST_RECORDS", 256, "records", "of history in one write: what is read for it is not read again"
)
HISTORY_BURST_BYTES = _limit(
    "HISTORY_BURST_BYTES", 64 * KIB, "bytes", "payload of such a write; a reader that stalls holds one of them"
)
BASE_BYTES_MAX = _limit(
    "BASE_BYTES_MAX", 255, "bytes", "the topic base of an event type, which with its prefix names a stream"
)

# -- flags
FLAG_VERSIONS_MIN = _limit(
    "FLAG_VERSIONS_MIN", 100, "versions", "of a manifest that keep their file index, however old; the contract names it"
)
FLAG_VERSION_DAYS = _limit(
    "FLAG_VERSION_DAYS", 30, "days", "for which a version keeps its file index in any case; the contract names it"
)
FLAG_PRUNED_PER_COMMIT = _limit(
    "FLAG_PRUNED_PER_COMMIT",
    64,
    "versions",
    "whose file indexes one commit lets go: after a long rest there may be many",
)
FLAG_VERSIONS_WEIGHT_KEPT = _limit(
    "FLAG_VERSIONS_WEIGHT_KEPT",
    256 * MIB,
    "bytes",
    "of memory of versions that are kept read, in all namespaces; the one used last is kept whatever it takes",
)
FLAG_READINGS_AT_ONCE = _limit(
    "FLAG_READINGS_AT_ONCE",
    2,
    "versions",
    "of different tenants that are read from the store for whoever asks for them",
)
FLAG_CLOSURES_WEIGHT_KEPT = _limit(
    "FLAG_CLOSURES_WEIGHT_KEPT",
    64 * MIB,
    "bytes",
    "of memory of closures that are kept, of all versions; those asked for longest ago go first",
)

# -- streams of flags
EVENTS_QUERY_BYTES_MAX = _limit(
    "EVENTS_QUERY_BYTES_MAX", 8 * KIB, "bytes", "the query of an event stream; the contract names it"
)
NAMESPACES_PER_STREAM_MAX = _limit(
    "NAMESPACES_PER_STREAM_MAX", 32, "namespaces", "that one event stream serves; the contract names it"
)
EVENT_STREAMS_PER_TOKEN_MAX = _limit(
    "EVENT_STREAMS_PER_TOKEN_MAX", 16, "streams", "that one token has open; the contract names it"
)
INLINE_BYTES_MAX = _limit(
    "INLINE_BYTES_MAX", 64 * KIB, "bytes", "JSON of an event with the files in it; the contract names it"
)
INLINE_FILES_DEFAULT = _limit(
    "INLINE_FILES_DEFAULT", 32, "files", "in an event; a client that has to change more fetches the whole"
)
CLOSURE_TOKEN_SECONDS = _limit(
    "CLOSURE_TOKEN_SECONDS", 60, "seconds", "for which an address of a closure is good; the contract names it"
)
FLAG_DELTA_BYTES_KEPT = _limit(
    "FLAG_DELTA_BYTES_KEPT", 32 * MIB, "bytes", "events between versions that streams share, with what they lead to"
)
FLAG_TAR_BYTES_KEPT = _limit("FLAG_TAR_BYTES_KEPT", 64 * MIB, "bytes", "archives of closures that were fetched last")
FLAG_TARS_AT_ONCE = _limit(
    "FLAG_TARS_AT_ONCE", 4, "archives", "of different tenants that are made; a big one takes seconds"
)
FLAG_TAR_SIZES_KEPT_MAX = _limit(
    "FLAG_TAR_SIZES_KEPT_MAX", 65_536, "closures", "whose size is known without making the archive"
)

# -- flags over HTTP
UPLOADS_AT_ONCE = _limit(
    "UPLOADS_AT_ONCE",
    4,
    "uploads",
    "of different tenants that are unpacked and looked at: each may become a hundred times as large",
)
UPLOADS_PER_TENANT_MAX = _limit(
    "UPLOADS_PER_TENANT_MAX", 16, "uploads", "of one tenant, with those that wait; each is in memory"
)
UPLOADS_WAITING_MAX = _limit("UPLOADS_WAITING_MAX", 64, "uploads", "of all tenants, with those that wait")
FORM_BYTES_MAX = _limit("FORM_BYTES_MAX", 16 * KIB, "bytes", "what a form may have around the archive in it")
FORM_FIELDS_MAX = _limit("FORM_FIELDS_MAX", 8, "fields", "of a form; one of them counts")
FORM_HEADERS_MAX = _limit("FORM_HEADERS_MAX", 8, "headers", "of one field of a form; browsers send two")
FLAGS_EVALUATED_MAX = _limit("FLAGS_EVALUATED_MAX", 1_000, "flags", "that one request names to be evaluated")
CONTEXT_TEXT_CHARS_MAX = _limit(
    "CONTEXT_TEXT_CHARS_MAX",
    8 * KIB,
    "characters",
    "of one attribute; every question about it may look through all of them",
)
EVALUATION_SLICE_CHARS = _limit(
    "EVALUATION_SLICE_CHARS",
    8 * MIB,
    "characters",
    "of context that the questions of an evaluation look through in one go: a hundredth of a second; more is done beside the loop",
)
EVALUATIONS_APART = _limit(
    "EVALUATIONS_APART", 2, "requests", "of different tenants that are evaluated beside the loop"
)
PREFLIGHT_SECONDS = _limit(
    "PREFLIGHT_SECONDS", 600, "seconds", "for which a browser need not ask again; most keep to less"
)
CLI_ANSWER_SECONDS = _limit("CLI_ANSWER_SECONDS", 60, "seconds", "that a verb waits for a server's answer")
FLAGS_LISTED_DEFAULT = _limit("FLAGS_LISTED_DEFAULT", 50, "rows", "one page of a list")
FLAGS_LISTED_MAX = _limit("FLAGS_LISTED_MAX", 200, "rows", "one page of a list")
FLAGS_TEXT_CHARS_MAX = _limit(
    "FLAGS_TEXT_CHARS_MAX", 1_024, "characters", "a name or a description, for people to read"
)

# -- access
TOKEN_BYTES_MAX = _limit("TOKEN_BYTES_MAX", 32 * KIB, "bytes", "a signed token; longer ones are not looked at")
TOKEN_LEEWAY_SECONDS = _limit(
    "TOKEN_LEEWAY_SECONDS",
    60,
    "seconds",
    "for which an expired token still counts: clocks differ; the contract names it",
)
AUTH_CONNECTIONS_MAX = _limit("AUTH_CONNECTIONS_MAX", 32, "connections", "to the service that knows users")
AUTH_ASKING_MAX = _limit("AUTH_ASKING_MAX", 1_000, "requests", "that wait to hear from it who is calling")
TENANTS_MAX = _limit("TENANTS_MAX", 10_000, "tenants", "of the flags surface; they are kept in memory")
NAMESPACES_MAX = _limit(
    "NAMESPACES_MAX", 50_000, "namespaces", "of all tenants; each has a stream, and others need room for theirs"
)
TOKENS_MAX = _limit(
    "TOKENS_MAX", 100_000, "tokens", "that were ever made, revoked ones among them: they are kept to tell who had one"
)
NAMESPACES_PER_TENANT_MAX = _limit(
    "NAMESPACES_PER_TENANT_MAX", 10_000, "namespaces", "of one tenant, so that none takes the room of all others"
)
TOKENS_PER_TENANT_MAX = _limit(
    "TOKENS_PER_TENANT_MAX", 20_000, "tokens", "of one tenant, revoked ones among them, for the same reason"
)
TOKEN_ORIGINS_MAX = _limit("TOKEN_ORIGINS_MAX", 64, "origins", "of pages that may use one client token")
AUTH_ANSWER_BYTES_MAX = _limit("AUTH_ANSWER_BYTES_MAX", 64 * KIB, "bytes", "one answer of it")
GATE_ANSWER_BYTES_MAX = _limit("GATE_ANSWER_BYTES_MAX", 8 * MIB, "bytes", "one list of destinations of a user")

# -- streams
PIPE_HIGH_WATER_BYTES = _limit(
    "PIPE_HIGH_WATER_BYTES",
    16 * KIB,
    "bytes",
    "unsent bytes after which a reader leaves the live set; 1,000 stalled readers cost 64 MB at the most",
)
PIPE_LOW_WATER_BYTES = _limit("PIPE_LOW_WATER_BYTES", 4 * KIB, "bytes", "unsent bytes at which it catches up again")
FLUSH_BYTES_MAX = _limit("FLUSH_BYTES_MAX", 32 * KIB, "bytes", "one shared write; a bigger burst is left to the cursor")
CATCH_UP_BYTES_MAX = _limit(
    "CATCH_UP_BYTES_MAX", 256 * KIB, "bytes", "one turn of one reader's catch-up before others have theirs"
)
LEGS_PER_SESSION_MAX = _limit("LEGS_PER_SESSION_MAX", 256, "streams", "streams that one session watches")
SESSIONS_MAX = _limit("SESSIONS_MAX", 20_000, "sessions", "open streams of one process")
STALL_SECONDS_MAX = _limit(
    "STALL_SECONDS_MAX", 30, "seconds", "a paused reader that takes not one byte for so long is closed as slow"
)
CLOSE_LINGER_SECONDS_MAX = _limit(
    "CLOSE_LINGER_SECONDS_MAX", 5, "seconds", "time for the closing event to leave; then the connection is cut"
)
HEARTBEAT_SPREAD_PERCENT = _limit(
    "HEARTBEAT_SPREAD_PERCENT", 10, "percent", "of the period, over which heartbeats that fall together are laid apart"
)
SSE_LINE_BYTES_MAX = _limit("SSE_LINE_BYTES_MAX", 16 * MIB, "bytes", "longest line the parser will hold")

LONG_POLLS_MAX = _limit("LONG_POLLS_MAX", 20_000, "requests", "readers that wait for something to answer them with")
LONG_POLL_MS_MAX = _limit("LONG_POLL_MS_MAX", 30_000, "ms", "one such wait; below the idle timeouts of common proxies")
TOPIC_RECORDS_MAX = _limit("TOPIC_RECORDS_MAX", 1_000, "records", "one diff, or one record frame of a topics watch")
TOPICS_LISTED_MAX = _limit("TOPICS_LISTED_MAX", 1_000, "topics", "one page of a list")
TOPICS_LISTED_DEFAULT = _limit("TOPICS_LISTED_DEFAULT", 100, "topics", "one page of a list")
ROUTERS_AT_WORK_MAX = _limit(
    "ROUTERS_AT_WORK_MAX",
    64,
    "routers",
    "copying at the same moment; their commits become one, and the others wait in line",
)
ROUTER_BATCH_RECORDS = _limit("ROUTER_BATCH_RECORDS", 1_000, "records", "of its source, in one turn of a router")
ROUTER_HOPS_MAX = _limit("ROUTER_HOPS_MAX", 8, "copies", "of one record around a circle of routers that is allowed")
ROUTER_KEYS_MAX = _limit(
    "ROUTER_KEYS_MAX", 10_000, "keys", "of copies still to be made, found in a dest where somebody else wrote them"
)
ROUTER_RETRY_SECONDS_MAX = _limit(
    "ROUTER_RETRY_SECONDS_MAX", 5, "seconds", "longest pause before a router that could not go on is tried again"
)
TOPICS_MEASURED_MAX = _limit(
    "TOPICS_MEASURED_MAX", 1_000, "topics", "with metrics of their own: what scrapes them keeps each series for ever"
)

# -- watching topics
WATCH_SESSION_SECONDS = _limit(
    "WATCH_SESSION_SECONDS", 300, "seconds", "a watch session without an open stream, before it is given up"
)
WATCH_INLINE_TOPICS_MAX = _limit(
    "WATCH_INLINE_TOPICS_MAX", 64, "topics", "written out in an event id; the places of more are packed into a token"
)
WATCH_INLINE_BYTES_MAX = _limit(
    "WATCH_INLINE_BYTES_MAX", 3 * KIB, "bytes", "of JSON written out in an event id, which makes 4 KiB of base64"
)
WATCH_SAVE_SECONDS = _limit(
    "WATCH_SAVE_SECONDS", 1, "seconds", "between two commits that save the places of watch sessions"
)
WATCH_SAVE_TOPICS_MAX = _limit(
    "WATCH_SAVE_TOPICS_MAX", 2_048, "topics", "looked at for one such commit, in turn: a millisecond or two"
)
WATCH_BATCH_BYTES_DEFAULT = _limit("WATCH_BATCH_BYTES_DEFAULT", 256 * KIB, "bytes", "payload of one record frame")
HEARTBEAT_MS_DEFAULT = _limit("HEARTBEAT_MS_DEFAULT", 15_000, "ms", "silence of a watch before it says that it lives")
HEARTBEAT_MS_MIN = _limit("HEARTBEAT_MS_MIN", 1_000, "ms", "below it heartbeats are traffic")
HEARTBEAT_MS_MAX = _limit("HEARTBEAT_MS_MAX", 60_000, "ms", "proxies cut what is silent for longer")

# -- manifests
FLAGS_PER_NAMESPACE_MAX = _limit(
    "FLAGS_PER_NAMESPACE_MAX", 64, "flags", "that a subscription names in one namespace; the contract names it"
)
ARCHIVE_BYTES_MAX = _limit("ARCHIVE_BYTES_MAX", 5 * MIB, "bytes", "a manifest as tar.gz; the contract names it")
ARCHIVE_UNPACKED_BYTES_MAX = _limit(
    "ARCHIVE_UNPACKED_BYTES_MAX", 50 * MIB, "bytes", "the same without compression; nothing is inflated beyond it"
)
ARCHIVE_PAX_BYTES_MAX = _limit(
    "ARCHIVE_PAX_BYTES_MAX", 64 * KIB, "bytes", "what an archive says about one member beside its header"
)

# -- queues
CLAIM_JOBS_MAX = _limit("CLAIM_JOBS_MAX", 1_000, "jobs", "claimed, held by a work stream, or named in one call")
NACK_DELAY_MS_MAX = _limit(
    "NACK_DELAY_MS_MAX", 86_400_000, "ms", "a day, the longest lease: a delayed job is kept in memory"
)

# -- HTTP
BODY_BYTES_MAX = _limit("BODY_BYTES_MAX", 64 * MIB, "bytes", "one request body")
BODIES_BYTES_MAX = _limit(
    "BODIES_BYTES_MAX",
    1 * GIB,
    "bytes",
    "bodies of all connections that are still arriving; more are told to come later",
)
SMALL_BODY_BYTES_MAX = _limit(
    "SMALL_BODY_BYTES_MAX", 256 * KIB, "bytes", "a request body that carries settings, not records"
)
HEADER_BYTES_MAX = _limit("HEADER_BYTES_MAX", 32 * KIB, "bytes", "all headers of one request")
HEADER_COUNT_MAX = _limit("HEADER_COUNT_MAX", 100, "headers", "headers of one request")
TARGET_BYTES_MAX = _limit(
    "TARGET_BYTES_MAX", 16 * KIB, "bytes", "request target; above the 8 KiB query that the flags surface answers itself"
)
PIPELINE_MAX = _limit("PIPELINE_MAX", 128, "requests", "unanswered requests of one connection; reading stops there")
CONNECTIONS_MAX = _limit("CONNECTIONS_MAX", 50_000, "connections", "open sockets of one process")
QUERY_FIELDS_MAX = _limit("QUERY_FIELDS_MAX", 1_024, "fields", "parameters of one query string")
CONNECTIONS_REFUSED_MAX = _limit(
    "CONNECTIONS_REFUSED_MAX", 256, "connections", "open only to be told that there is no room; further ones are cut"
)
JSON_DEPTH_MAX = _limit("JSON_DEPTH_MAX", 128, "levels", "nesting of one JSON text")
JSON_SLICE_BYTES = _limit(
    "JSON_SLICE_BYTES",
    1 * MIB,
    "bytes",
    "of a JSON text, inspected at a time: a big one needs little memory beside itself",
)
PARSE_SLICE_BYTES = _limit(
    "PARSE_SLICE_BYTES", 16 * KIB, "bytes", "fed to the parser at a time, so that limits bite early"
)
ANSWER_BYTES_PENDING_MAX = _limit(
    "ANSWER_BYTES_PENDING_MAX",
    64 * KIB,
    "bytes",
    "answers of one connection waiting to be written before requests wait",
)
BODY_BYTES_UNROUTED_MAX = _limit(
    "BODY_BYTES_UNROUTED_MAX", 1 * MIB, "bytes", "a body sent to a path that has no row in the route table"
)
ROUTE_CACHE_MAX = _limit("ROUTE_CACHE_MAX", 4_096, "paths", "resolved paths kept; emptied when full")
ROUTE_CACHE_PATH_BYTES = _limit("ROUTE_CACHE_PATH_BYTES", 256, "bytes", "longest path worth keeping resolved")
HEAD_CACHE_MAX = _limit("HEAD_CACHE_MAX", 1_024, "heads", "request heads kept with what they mean; emptied when full")
HEAD_CACHE_BYTES = _limit("HEAD_CACHE_BYTES", 2 * KIB, "bytes", "longest request head worth keeping")
KEEP_ALIVE_SECONDS = _limit("KEEP_ALIVE_SECONDS", 75, "seconds", "an idle connection; above the 60 s of common proxies")
HEADER_SECONDS = _limit("HEADER_SECONDS", 15, "seconds", "all headers of one request, however slowly they drip")
BODY_GRACE_SECONDS = _limit("BODY_GRACE_SECONDS", 15, "seconds", "before the pace of a body is judged")
BODY_BYTES_PER_SECOND_MIN = _limit(
    "BODY_BYTES_PER_SECOND_MIN", 512, "bytes", "slowest body that is waited for, per second"
)
WRITE_STALL_SECONDS = _limit("WRITE_STALL_SECONDS", 60, "seconds", "unsent answer bytes without any progress")
LINGER_SECONDS = _limit(
    "LINGER_SECONDS", 2, "seconds", "reading on after a refusal, so that the client sees the answer and not a reset"
)
LINGER_BYTES_MAX = _limit("LINGER_BYTES_MAX", 4 * MIB, "bytes", "thrown away while lingering")
STREAM_INPUT_BYTES_MAX = _limit(
    "STREAM_INPUT_BYTES_MAX", 64 * KIB, "bytes", "what a client may send after its stream began, ignored"
)

# -- manifests
MANIFEST_FILE_BYTES_MAX = _limit(
    "MANIFEST_FILE_BYTES_MAX",
    512 * KIB,
    "bytes",
    "one file of a manifest: ten thousand ids in one rule; reading takes a thousand times its size in the worst case",
)
MANIFEST_WEIGHT_MAX = _limit(
    "MANIFEST_WEIGHT_MAX",
    256 * MIB,
    "bytes",
    "of memory that a manifest takes when it is read, by its tables and values: that of fifty thousand small flags",
)
LINT_SLICE_WEIGHT = _limit(
    "LINT_SLICE_WEIGHT",
    4 * MIB,
    "bytes",
    "of memory by which files are read until somebody else has a turn: less than a second",
)
TOML_KEY_PARTS_MAX = _limit(
    "TOML_KEY_PARTS_MAX", 32, "parts", "a dotted key costs the parser memory by the square of its parts"
)
PREDICATE_DEPTH_MAX = _limit(
    "PREDICATE_DEPTH_MAX", 32, "levels", "predicates within predicates; they are read by recursion"
)
VARIANT_DEPTH_MAX = _limit("VARIANT_DEPTH_MAX", 32, "levels", "of a json variant, which every answer writes out")
SEMVER_CHARACTERS_MAX = _limit("SEMVER_CHARACTERS_MAX", 256, "characters", "a version in a file or a context")
DIAGNOSTICS_PER_FILE_MAX = _limit("DIAGNOSTICS_PER_FILE_MAX", 100, "findings", "kept of one file read by itself")
DIAGNOSTICS_MAX = _limit("DIAGNOSTICS_MAX", 10_000, "findings", "told of one manifest, errors first")
LINT_MEMO_BYTES_MAX = _limit(
    "LINT_MEMO_BYTES_MAX",
    128 * MIB,
    "bytes",
    "of memory of single files that are kept read, so that a changed manifest is read where it changed",
)
EVALUATION_STEPS_MAX = _limit(
    "EVALUATION_STEPS_MAX",
    1_000,
    "steps",
    "of one flag's rules with all segments written out; beyond it each segment is decided once, before the rules are asked",
)
EVALUATION_DEPTH_MAX = _limit(
    "EVALUATION_DEPTH_MAX", 64, "levels", "of one flag's rules with all segments written out; beyond it the same"
)

# -- clients
CLIENT_ANSWER_HEAD_BYTES_MAX = _limit(
    "CLIENT_ANSWER_HEAD_BYTES_MAX", 64 * KIB, "bytes", "head of an answer, or of one of its chunks"
)
CLIENT_CONNECT_SECONDS = _limit("CLIENT_CONNECT_SECONDS", 15, "seconds", "until an answer has begun")
CLIENT_SILENCE_SECONDS = _limit(
    "CLIENT_SILENCE_SECONDS", 90, "seconds", "of an event stream: three times what the contract allows a server"
)
CLIENT_SNAPSHOT_SECONDS = _limit(
    "CLIENT_SNAPSHOT_SECONDS", 60, "seconds", "for a whole snapshot; its address is good for no longer"
)
CLIENT_RETRY_SECONDS = _limit(
    "CLIENT_RETRY_SECONDS", 1, "seconds", "at the most before a first retry; each further one may take twice as long"
)
CLIENT_RETRY_SECONDS_MAX = _limit("CLIENT_RETRY_SECONDS_MAX", 30, "seconds", "at the most before any retry")
CLIENT_RETRY_SLOW_SECONDS = _limit(
    "CLIENT_RETRY_SLOW_SECONDS", 60, "seconds", "after a refusal that stands until somebody changes something"
)
CLIENT_RETRY_AFTER_SECONDS_MAX = _limit(
    "CLIENT_RETRY_AFTER_SECONDS_MAX", 300, "seconds", "that a server may ask a client to stay away"
)
CLIENT_EVENTS_WAITING_MAX = _limit(
    "CLIENT_EVENTS_WAITING_MAX",
    64,
    "events",
    "of one namespace while its snapshot is fetched; beyond it the newest closure is fetched instead",
)
CLIENT_EVENT_BYTES_MAX = _limit(
    "CLIENT_EVENT_BYTES_MAX", 1 * MIB, "bytes", "an event of flags; the contract holds one to 64 KiB of JSON"
)
CLIENT_SNAPSHOT_TRIES_MAX = _limit(
    "CLIENT_SNAPSHOT_TRIES_MAX", 4, "tries", "for one snapshot, before a new stream is asked for another"
)
CLIENT_STRANGE_ANSWERS_MAX = _limit(
    "CLIENT_STRANGE_ANSWERS_MAX",
    3,
    "streams",
    "in a row that speak the same unknown protocol, before no other is opened: once may be a damaged byte",
)
CLIENT_CLOSE_SECONDS = _limit("CLIENT_CLOSE_SECONDS", 5, "seconds", "that closing waits for the background thread")
