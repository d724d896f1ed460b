// §4.4: whoever observes calls may fail: a call is answered all the same.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { noMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'works',
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
});

const failing = () => {
  throw new Error('the registry is gone');
};

test.each(['recordToolCall', 'recordMcpRequest'] as const)(
  '§4.4 %s that throws is logged, and the call answered in both eras',
  async (member) => {
    const metrics = { ...noMetrics, [member]: failing };
    const gateway = closeAfterTest(await startGateway({ deps: { catalog, metrics } }));
    const call = { name: 'works', arguments: {} };
    const session = await gateway.open();
    expect((await gateway.call(session, 'tools/call', call)).json.result).toEqual({ content: [] });
    const { json } = await stateless(gateway, 'tools/call', call);
    expect(json.result).toMatchObject({ content: [] });
    expect(gateway.log).toContainEqual(
      expect.objectContaining({ level: 'error', msg: expect.stringMatching(/call/) }),
    );
  },
);
