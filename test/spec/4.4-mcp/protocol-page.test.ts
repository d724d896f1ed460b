// docs/protocol.md: its commands and its tables, held to their word.
import { expect, test } from 'vitest';
import { METHODS } from '../../../src/mcp/protocol/methods.ts';
import { SUPPORTED_VERSIONS } from '../../../src/mcp/protocol/revisions.ts';
import { codeBlocks, readPage } from '../../support/gateway/documentation-pages.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const page = readPage('protocol');
const answers = codeBlocks(page, 'json');
// With `-N` they show streams, whose ids are others each time.
const commands = codeBlocks(page, 'sh').filter((command) => command.startsWith('curl {base_url}'));

const gateway = useGateway({ env: { AUTH_REQUIRED: 'false' } });

test.each(commands.map((command, at) => ({ command, at })))(
  '§4.4 the protocol page: command $at is answered as it says',
  async ({ command, at }) => {
    const headers = [...command.matchAll(/-H ['"]([\w-]+): ([^'"]*)['"]/g)];
    const [, body] = /-d '([^']*)'/.exec(command) ?? [];
    const answer = await gateway.request({
      method: 'POST',
      path: '/mcp',
      headers: Object.fromEntries(headers.map(([, name = '', value = '']) => [name, value])),
      body,
    });
    expect(answer.status).toBe(200);
    const { version } = answer.json.result._meta['io.modelcontextprotocol/serverInfo'];
    expect(answer.json).toEqual(JSON.parse((answers[at] ?? '').replace('{version}', version)));
  },
);

test('§4.4 the protocol page: there are as many answers as commands', () => {
  expect(commands).toHaveLength(2);
  expect(answers).toHaveLength(commands.length);
});

test('§4.4 the protocol page: names every revision and every shared method', () => {
  const shared = METHODS.filter(({ era, offers }) => era === undefined && offers).map(
    ({ name }) => name,
  );
  expect(shared.length).toBeGreaterThan(5);
  for (const name of [...SUPPORTED_VERSIONS, ...shared]) expect(page).toContain(name);
});
