// §26.2: the guard in examples/guard-http, started as its page says.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { callTool } from '../../support/clients/stateless.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { sendJson, startRawServer } from '../../support/upstreams/raw-server.ts';

const raw = useShared(() =>
  startRawServer((res, id, { params }) =>
    sendJson(res, {
      id,
      result: { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] },
    }),
  ),
);

const guard = useShared(async () => {
  const path = new URL('../../../examples/guard-http/guard.mjs', import.meta.url).pathname;
  const child = spawn(process.execPath, [path], { env: { PORT: '0' } });
  const [said] = await once(child.stdout.setEncoding('utf8'), 'data');
  return {
    url: /http:\S+/.exec(String(said))?.[0] ?? '',
    async close() {
      child.kill();
      await once(child, 'exit');
    },
  };
});

test('§26.2 the example redacts addresses in results, and refuses card numbers in calls', async () => {
  const gateway = await startForTest({
    file: {
      mcpServers: { raw: raw.url },
      guards: [
        {
          name: 'personal-data',
          on: ['tools/call', 'tools/result'],
          use: { http: { url: guard.url, timeout: 20_000 } },
        },
      ],
    },
  });
  const say = async (args: Record<string, unknown>) =>
    (await callTool(gateway, 'raw__any', args)).json.result.content[0].text;
  expect(await say({ to: 'ada@example.com' })).toBe('{"to":"[e-mail]"}');
  expect(await say({ card: '4111 1111 1111 1111' })).toContain('card number');
  expect(await say({ a: 1 })).toBe('{"a":1}');
});
