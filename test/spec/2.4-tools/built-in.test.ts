// src/built-in/index.ts: what the specification names is offered, whatever else is.
import { beforeAll, expect, test } from 'vitest';
import { builtInCatalog } from '../../../src/built-in/index.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const gateway = useGateway({ deps: { catalog: builtInCatalog } });
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

test.each([
  { list: 'tools', name: 'service_ping' },
  { list: 'prompts', name: 'greeting' },
  { list: 'prompts', name: 'user-context' },
  { list: 'resources', uri: 'config://server' },
  { list: 'resources', uri: 'user://profile' },
])('§2.4 built in: $list/list has $name$uri', async ({ list, ...entry }) => {
  const { json } = await gateway.call(session, `${list}/list`);
  expect(json.result[list]).toContainEqual(expect.objectContaining(entry));
});
