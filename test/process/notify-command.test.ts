// §22.7: postern notify --test.
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { makeFolder } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { listenOnLoopback } from '../support/upstreams/listen.ts';

async function run(notify: object | undefined, args = ['--test']) {
  const folder = await makeFolder();
  const name = await writeFileIn(folder, 'mcp.json', JSON.stringify({ mcpServers: {}, notify }));
  return runInside({}, { args: ['notify', '--config', join(folder, name), ...args] });
}

test('§22.7 notify --test sends one message, and says whether it was accepted', async () => {
  const received: string[] = [];
  let status = 204;
  const { url } = closeAfterTest(
    await listenOnLoopback(async (req, res) => {
      received.push(await text(req));
      res.writeHead(status).end();
    }),
  );
  expect(await run({ url })).toMatchObject({
    code: 0,
    stdout: 'The webhook has accepted the notification.\n',
  });
  expect(JSON.parse(received[0] ?? '')).toMatchObject({ type: 'test' });
  status = 404;
  const refused = await run({ url });
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('the webhook answered 404'),
  ]);
  expect(received).toHaveLength(2);
});

test.each([
  [undefined, ['--test'], 'has no "notify"'],
  [{ url: 'https://hooks.example.com/x' }, [], 'Add --test'],
  [{}, ['--test'], '"url" is missing'],
  [{ url: 'https://h.example/x', secret: 'short' }, ['--test'], 'whsec_'],
  [
    { url: 'https://h.example/x', on: ['logouts'] },
    ['--test'],
    'approvals, servers, lock or logins',
  ],
])('§22.7 notify: with %j and %j it says what is missing', async (notify, args, message) => {
  const { code, stderr } = await run(notify, args);
  expect(code).not.toBe(0);
  expect(stderr).toContain(message);
});
