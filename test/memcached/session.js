// Uses the JavaScript client memcached against a server.
const assert = require("assert");
const { promisify } = require("util");
const Memcached = require("memcached");

const c = new Memcached(process.argv[2], { timeout: 20000, maxValue: 1048576 });
const call = (name, ...args) => promisify(c[name]).call(c, ...args);

(async () => {
  const large = "v".repeat(900000);
  assert(await call("set", "js-a", "1", 1000));
  assert(await call("set", "js-large", large, 0));
  assert(await call("set", "js-n", 9, 0));
  const found = await call("getMulti", ["js-a", "js-none", "js-large"]);
  assert.deepStrictEqual(Object.keys(found).sort(), ["js-a", "js-large"]);
  assert(found["js-large"] === large);
  await assert.rejects(call("add", "js-a", "x", 0));
  assert.strictEqual(await call("incr", "js-n", 3), 12);
  const got = await call("gets", "js-a");
  assert(await call("cas", "js-a", "2", got.cas, 0));
  assert(!(await call("cas", "js-a", "3", got.cas, 0)));
  assert(await call("append", "js-a", "4"));
  assert.strictEqual(await call("get", "js-a"), "24");
  assert(await call("touch", "js-a", 500));
  assert(await call("del", "js-n"));
  assert.strictEqual(await call("get", "js-n"), undefined);
  console.log("ok");
  c.end();
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
