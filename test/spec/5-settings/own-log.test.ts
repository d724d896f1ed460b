// A gateway in a program of one's own, with a log of one's own: the four levels are all that it needs.
import { expect, test } from 'vitest';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';

const lines: string[] = [];
const writeAt = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
const log = {
  error: writeAt('error'),
  warn: writeAt('warn'),
  info: writeAt('info'),
  debug: writeAt('debug'),
};
const gateway = useFreshGateway({ deps: { log } });

test('§5 a log that does not say which levels it writes is given all lines', async () => {
  expect((await gateway.request({ path: '/health' })).status).toBe(200);
  expect((await gateway.request({ path: '/nowhere' })).status).toBe(404);
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  expect((await gateway.rpc(list, { token: 'no token' })).status).toBe(401);
  expect(lines.filter((line) => line.endsWith('Answered.'))).toHaveLength(1);
  expect(lines.filter((line) => line.endsWith('Refused.'))).toHaveLength(2);
});
