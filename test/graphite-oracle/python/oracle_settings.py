"""Settings of a graphite-web that has its series in memory and writes nothing outside of a temporary folder."""
import tempfile

_dir = tempfile.mkdtemp(prefix="graphite-oracle-")
SECRET_KEY = "oracle"
LOG_DIR = STORAGE_DIR = WHISPER_DIR = CONF_DIR = _dir
INDEX_FILE = _dir + "/index"
TIME_ZONE = "UTC"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
CARBONLINK_HOSTS = []
STORAGE_FINDERS = ("memory.Finder",)
TAGDB = "memory.TagDB"
UTF8_METRICS = True
ALLOWED_HOSTS = ["*"]
LOG_RENDERING_PERFORMANCE = LOG_CACHE_PERFORMANCE = False
