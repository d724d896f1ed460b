// postern.lock beside the configuration of a gateway that runs.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { callTool } from '../support/catalogs/catalog-files.ts';
import {
  endPosterns,
  makeFolder,
  type Postern,
  type RunningPostern,
  runPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { useFresh } from '../support/lifetimes.ts';
import { buildTool, startListingServer } from '../support/upstreams/listing-server.ts';

const wiki = useFresh(() =>
  startListingServer({ tools: [buildTool('search')], instructions: 'Search first.' }),
);
const HIDDEN = expect.objectContaining({ code: -32602 });
/** A busy machine looks at files late. */
const SLOW = { timeout: 20_000, interval: 100 };
let cwd: string;

beforeEach(async () => {
  cwd = await makeFolder();
  await writeFile(
    join(cwd, 'mcp.json'),
    JSON.stringify({ mcpServers: { wiki: { url: wiki.url } } }),
  );
});
afterEach(endPosterns);

const lock = () => runInside({}, { args: ['lock', '--config', 'mcp.json'], cwd });

const start = () =>
  startPostern(
    { AUTH_REQUIRED: 'false', METRICS_ENABLED: 'true' },
    { args: ['start', '--config', 'mcp.json'], cwd },
  );

const search = ({ url }: RunningPostern) => callTool(url, 'wiki__search');

const linesWith = (postern: Postern, words: string) =>
  postern.log().filter(({ msg }) => msg.includes(words));

test('§18.7 a gateway serves what was approved; what is new or has changed is hidden, told and counted', async () => {
  expect((await lock()).code).toBe(0);
  wiki.listing.tools = [buildTool('search'), buildTool('new')];
  const postern = await start();
  expect(await search(postern)).toBe('ran search');
  expect(await callTool(postern.url, 'wiki__new')).toEqual(HIDDEN);
  expect(linesWith(postern, 'postern.lock')).toContainEqual(
    expect.objectContaining({ level: 'warn', server: 'wiki', name: 'new' }),
  );
  const metrics = await (await fetch(`${postern.url}/metrics`)).text();
  expect(metrics).toMatch(
    /^upstream_lock_refusals_total\{server="wiki",kind="tool",reason="new"\} [1-9]/m,
  );
});

test('§18.7 a lock that appears, changes and is emptied is followed while the gateway runs', async () => {
  const postern = await start();
  expect(await search(postern)).toBe('ran search');
  await writeFile(join(cwd, 'postern.lock'), '{"version":1,"servers":{}}');
  await expect.poll(() => search(postern), SLOW).toEqual(HIDDEN);
  expect((await lock()).code).toBe(0);
  await expect.poll(() => search(postern), SLOW).toBe('ran search');
  await writeFile(join(cwd, 'postern.lock'), '{"version":1,"servers":{}}');
  await expect.poll(() => search(postern), SLOW).toEqual(HIDDEN);
  await writeFile(join(cwd, 'postern.lock'), '{}');
  await expect.poll(() => search(postern), SLOW).toBe('ran search');
});

test('§18.7 a lock that breaks while the gateway runs: the former one stays in force', async () => {
  await writeFile(join(cwd, 'postern.lock'), '{"version":1,"servers":{}}');
  const postern = await start();
  await writeFile(join(cwd, 'postern.lock'), '{"version":1,"serv');
  await expect
    .poll(() => linesWith(postern, 'has problems'), SLOW)
    .toEqual([
      expect.objectContaining({ problems: [expect.stringContaining('postern.lock is not JSON.')] }),
    ]);
  expect(await search(postern)).toEqual(HIDDEN);
});

test('§18.7 a lock that cannot be used stops the start', async () => {
  await writeFile(join(cwd, 'postern.lock'), 'null');
  const { code, stderr } = await runPostern(
    { AUTH_REQUIRED: 'false' },
    { args: ['start', '--config', 'mcp.json'], cwd },
  );
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/postern\.lock is not JSON.*`postern lock`/),
  ]);
});

test('§18.6 auth that the settings do not allow stops the start', async () => {
  const servers = { wiki: { url: wiki.url, auth: { type: 'token-exchange', audience: 'wiki' } } };
  await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers: servers }));
  const { code, stderr } = await runPostern(
    { OIDC_ISSUER: 'https://id.example' },
    { args: ['start', '--config', 'mcp.json'], cwd },
  );
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/Server wiki: auth token-exchange needs OAUTH_CLIENT_ID/),
  ]);
});
