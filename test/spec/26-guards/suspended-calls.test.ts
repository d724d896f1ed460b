// §18.3, §26: a call that waits for an answer of its client keeps its guards, and nothing of the request that began it.
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { inject } from 'light-my-request';
import { expect, test } from 'vitest';
import { ASKABLE, statelessRequest } from '../../support/clients/stateless.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';

const one = useShared(startRelayServer1);

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

test('§26 a suspended call with guards of questions does not keep its first response', async () => {
  const use = await writeGuard("return { decision: 'pass' };");
  const guards = [{ name: 'g', on: ['elicitation'], use }];
  const gateway = await startForTest({ file: { mcpServers: { one: one.url }, guards } });
  const token = await gateway.issuer.sign();
  let response: WeakRef<object> | undefined;

  async function call() {
    const { message, headers } = statelessRequest(
      'tools/call',
      { name: 'one__ask' },
      { meta: ASKABLE },
    );
    const answer = await inject(
      (req, res) => {
        response = new WeakRef(res);
        gateway.gateway.handler(req, res);
      },
      {
        method: 'POST',
        url: '/mcp',
        headers: {
          ...headers,
          host: new URL(gateway.baseUrl).host,
          authorization: `Bearer ${token}`,
        },
        payload: message,
      },
    );
    return answer.json().result.resultType;
  }

  expect(await call()).toBe('input_required');
  await expect
    .poll(
      async () => {
        await pause(10);
        collectGarbage();
        return response?.deref() === undefined;
      },
      { timeout: 5_000 },
    )
    .toBe(true);
});
