// Arguments and results as they were written, whatever way leads to a server, and whatever looks at them on it.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { createAnyJsonText } from '../../support/fuzz/json-texts.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { startEchoingServers, TRANSPORTS } from '../../support/upstreams/echoing-servers.ts';

const NUMBERS = '{"order":7205759403792793601, "all" : [1e400,1.0,-0,0.12345678901234567891]}';
const ERAS = ['session', 'stateless'] as const;

type Era = (typeof ERAS)[number];
type Name = (typeof TRANSPORTS)[number];

/** Resolves to what the server got and what the client got, both to the letter. */
async function createCall(gateway: CatalogGateway) {
  const token = await gateway.issuer.sign({ sub: 'ann' });
  const session = await gateway.open({ token });

  return async function call(era: Era, name: Name, args: string, meta: JsonObject = {}) {
    const given = { name: `${name}__echo` };
    const { message, headers } = statelessRequest('tools/call', given, { meta });
    const written =
      era === 'stateless'
        ? JSON.stringify(message).replace('"params":{', `"params":{"arguments":${args},`)
        : `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}__echo","_meta":${JSON.stringify(meta)},"arguments":${args}}}`;
    const { text } = await gateway.rpc(
      written,
      era === 'stateless' ? { token, headers } : { token, session },
    );
    const data = text.startsWith('event: ') ? text.split('data: ')[1] : text;
    const { result } = JSON.parse(data ?? '');
    const sent: string = result?.content[0].text ?? text.slice(0, 500);
    return { sent, answered: text };
  };
}

/** Line ends stay where a message is no line. */
const oneLine = (text: string) => text.replace(/[\r\n]/g, ' ');

const toArguments = (given: string, back: string, pad: number) =>
  `{"given": ${given},"pad":"${'ä'.repeat(pad)}","back":${JSON.stringify(back)}}`;

const findIn = (text: string, part: string) =>
  oneLine(text).includes(oneLine(part)) ? 'there' : text.slice(0, 1_000);

function expectAsWritten(
  { sent, answered }: { readonly sent: string; readonly answered: string },
  args: string,
  back: string,
) {
  expect(findIn(sent, `"arguments":${args}`)).toBe('there');
  expect(findIn(answered, `"structuredContent":{"value":${back}}`)).toBe('there');
}

const PASS = 'return { decision: "pass" };';
/** What a guard makes of a message, in which all numbers are JavaScript's. */
const MARK =
  'const { value } = message; return { decision: "change", value: { ...value, _meta: { ...value._meta, "x/seen": 1 } } };';

const guard = async (body: string, on: string) => ({
  guards: [{ name: 'look', use: await writeGuard(body), on: [on] }],
});

const LOOKED_AT = {
  nothing: async () => ({}),
  rules: async () => ({
    rules: [{ who: 'everyone', may: ['*'], when: '!has(args.force)' }],
  }),
  'a guard of calls': () => guard(PASS, 'tools/call'),
  'a guard of results': () => guard(PASS, 'tools/result'),
} as const;

const startGateway = async (more: object) =>
  startForTest({ file: { mcpServers: await startEchoingServers(), ...more } });

test.each(Object.entries(LOOKED_AT))(
  '§18.3 values: with %s, any JSON reaches a server and comes back as it was written',
  async (_what, more) => {
    const call = await createCall(await startGateway(await more()));
    await fc.assert(
      fc.asyncProperty(
        createAnyJsonText(true),
        createAnyJsonText(true),
        fc.constantFrom(...TRANSPORTS),
        fc.constantFrom(...ERAS),
        fc.constantFrom(0, 0, 0, 400, 1_500, 20_000),
        async (given, back, name, era, pad) => {
          const args = toArguments(given, back, pad);
          expectAsWritten(await call(era, name, args), args, back);
        },
      ),
      { numRuns: chooseCount(30, 1_000) },
    );
  },
);

test.each(TRANSPORTS.flatMap((name) => ERAS.map((era) => [name, era] as const)))(
  '§18.3 values: over %s, for a client of the %s era, they are as written from 100 bytes to 9 MB',
  async (name, era) => {
    const env = { MAX_BODY_BYTES: '12000000', MAX_UPSTREAM_BYTES: '40000000' };
    const mcpServers = await startEchoingServers();
    const call = await createCall(await startForTest({ file: { mcpServers }, env }));
    for (const pad of [10, 300, 1_000, 8_000, 500_000, 4_500_000]) {
      const args = toArguments(NUMBERS, NUMBERS, pad);
      expectAsWritten(await call(era, name, args), args, NUMBERS);
    }
  },
);

test('§18.3 values: a member that is there twice goes on as it was read', async () => {
  const call = await createCall(await startGateway({}));
  for (const era of ERAS) {
    const { sent } = await call(era, 'json', '{"back":"1","a":1.0,"a":[2.0, 2.0]}');
    expect(sent).toContain('"arguments":{"back":"1","a":[2.0,2.0]}');
  }
});

test('§18.3 values: arguments under a name that is spelled by escapes are those that go on', async () => {
  const gateway = await startGateway({
    rules: [{ who: 'everyone', may: ['*'], when: 'args.n == 1' }],
  });
  const token = await gateway.issuer.sign({ sub: 'ann' });
  const session = await gateway.open({ token });
  const real = '{"back":"1","n":1.0}';
  for (const decoy of [
    '"arguments":{"back":"2","n":2}',
    '"\\"arguments":{"n":2}',
    '"x":"\\"arguments\\":{}"',
  ]) {
    const params = `{"name":"json__echo","_meta":{"x":{${decoy}}},"argument\\u0073":${real}}`;
    const { text } = await gateway.rpc(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`,
      { token, session },
    );
    expect(JSON.parse(text).result.content[0].text).toContain(`"arguments":${real}`);
  }
});

test.each(ERAS)(
  '§26.3 guards: of a client of the %s era, what a guard leaves as it was keeps its numbers',
  async (era) => {
    for (const point of ['tools/call', 'tools/result']) {
      const change =
        point === 'tools/call'
          ? 'const { value } = message; return { decision: "change", value: { ...value, arguments: { ...value.arguments, seen: typeof value.arguments.given.order } } };'
          : MARK;
      const call = await createCall(await startGateway(await guard(change, point)));
      const { sent, answered } = await call(era, 'json', toArguments(NUMBERS, NUMBERS, 0));
      const compact = NUMBERS.replaceAll(' ', '');
      if (point === 'tools/call') {
        expect(sent).toContain(`"arguments":{"given":${compact},`);
        expect(sent).toContain('"seen":"number"');
      } else {
        expect(answered).toContain(`"structuredContent":{"value":${compact}}`);
        expect(answered).toContain('"x/seen":1');
      }
    }
  },
);

test.each(ERAS)(
  '§26.3 guards: of a client of the %s era, what a guard changes in place is changed for the server, too',
  async (era) => {
    const change =
      'const { value } = message; value.arguments.secret = "gone"; value._meta["x/secret"] = "gone"; return { decision: "change", value };';
    const call = await createCall(await startGateway(await guard(change, 'tools/call')));
    const { sent } = await call(era, 'json', '{"secret":"told","back":"1"}', {
      'x/secret': 'told',
    });
    expect(sent).toContain('"secret":"gone"');
    expect(sent).toContain('"x/secret":"gone"');
    expect(sent).not.toContain('told');
  },
);

test('§26.3 guards: what a guard changes in place and lets pass goes on as it was, and is asked about as such', async () => {
  const change = 'message.value.arguments.order = "another"; return { decision: "pass" };';
  const gateway = await startGateway({
    ...(await guard(change, 'tools/call')),
    rules: [
      { who: 'everyone', may: ['*'] },
      { who: 'everyone', may: ['json__*'], ask: 'user' },
    ],
  });
  const { message, headers } = statelessRequest(
    'tools/call',
    { name: 'json__echo', arguments: { order: 'this', back: '1' } },
    { meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } } },
  );
  const token = await gateway.issuer.sign({ sub: 'ann' });
  const { json } = await gateway.rpc(message, { token, headers });
  const shown: string = json.result.inputRequests.approval.params.message;
  expect(shown).toContain('this');
  expect(shown).not.toContain('another');
});

test.each([
  ['[5,7205759403792793601]', '[7205759403792793601]'],
  ['[7205759403792793601,7205759403792793602]', undefined],
  ['[1.0,1e0]', '[1.0]'],
])('§26.3 guards: of %s without its first number the server gets %s', async (given, left) => {
  const change =
    'const { value } = message; value.arguments.ids.shift(); return { decision: "change", value };';
  const call = await createCall(await startGateway(await guard(change, 'tools/call')));
  const { sent } = await call('session', 'json', `{"ids":${given},"back":"1"}`);
  if (left === undefined) expect(sent).toContain('could not check this');
  else expect(sent).toContain(`"ids":${left}`);
});
