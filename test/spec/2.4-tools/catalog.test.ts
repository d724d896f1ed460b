import { beforeAll, describe, expect, test } from 'vitest';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const gateway = useGateway({
  env: { SERVICE_DISPLAY_NAME: 'Acme Tools', NODE_ENV: 'staging' },
});
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

const call = async (method: string, params?: unknown) =>
  (await gateway.call(session, method, params)).json;

describe('tools', () => {
  test('§2.4 tools/list describes service_ping with a Draft 7 schema', async () => {
    const { tools } = (await call('tools/list')).result;
    expect(tools).toContainEqual({
      name: 'service_ping',
      description: expect.any(String),
      inputSchema: {
        type: 'object',
        properties: { message: expect.objectContaining({ type: 'string' }) },
        additionalProperties: false,
      },
    });
  });

  test.each([
    { args: { message: 'hello' }, text: 'Acme Tools MCP Server: hello' },
    { args: { message: '' }, text: 'Acme Tools MCP Server: ' },
    { args: { message: '𝄞 "\\ \u2028' }, text: 'Acme Tools MCP Server: 𝄞 "\\ \u2028' },
    { args: {}, text: 'Acme Tools MCP Server: pong' },
    { args: undefined, text: 'Acme Tools MCP Server: pong' },
  ])('§2.5 service_ping with $args answers one text item', async ({ args, text }) => {
    const { result } = await call('tools/call', { name: 'service_ping', arguments: args });
    expect(result).toEqual({ content: [{ type: 'text', text }] });
  });

  test.each([
    { args: { message: 1 }, named: 'message' },
    { args: { message: null }, named: 'message' },
    { args: { extra: 'x' }, named: 'extra' },
    { args: JSON.parse('{"__proto__":"x"}'), named: '__proto__' },
  ])('§2.4 arguments $args fail the schema: isError naming the member', async ({ args, named }) => {
    const { result } = await call('tools/call', { name: 'service_ping', arguments: args });
    expect(result.isError).toBe(true);
    expect(result.content[0].text).toContain(named);
  });

  test('§2.4 a long name of an argument is neither answered nor logged in full', async () => {
    const params = { name: 'service_ping', arguments: { ['x'.repeat(100_000)]: '' } };
    const { text } = await gateway.call(session, 'tools/call', params);
    expect(text.length).toBeLessThan(500);
    expect(JSON.stringify(gateway.log.at(-1)).length).toBeLessThan(1000);
  });
});

describe('prompts', () => {
  test('§2.6 prompts/list describes both prompts and their arguments', async () => {
    const { prompts } = (await call('prompts/list', {})).result;
    const argument = (name: string, required: boolean) => ({
      name,
      required,
      description: expect.any(String),
    });
    expect(prompts).toContainEqual({
      name: 'greeting',
      description: expect.any(String),
      arguments: [argument('name', true), argument('style', false)],
    });
    expect(prompts).toContainEqual({
      name: 'user-context',
      description: expect.any(String),
      arguments: [argument('messageType', false)],
    });
  });

  const textOf = async (name: string, args: object) => {
    const { result } = await call('prompts/get', { name, arguments: args });
    expect(result.messages).toEqual([
      { role: 'user', content: { type: 'text', text: expect.any(String) } },
    ]);
    return result.messages[0].content.text as string;
  };

  test('§2.6 greeting has four styles with different texts, friendly by default', async () => {
    const styles = ['formal', 'casual', 'friendly', 'enthusiastic'];
    const texts = await Promise.all(
      styles.map((style) => textOf('greeting', { name: 'Ada', style })),
    );
    expect(new Set(texts).size).toBe(4);
    for (const text of texts) expect(text).toContain('Ada');
    expect(await textOf('greeting', { name: 'Ada' })).toBe(texts[2]);
  });

  test('§2.6 user-context has three different texts, welcome by default', async () => {
    const types = ['welcome', 'status', 'summary'];
    const texts = await Promise.all(
      types.map((messageType) => textOf('user-context', { messageType })),
    );
    expect(new Set(texts).size).toBe(3);
    expect(await textOf('user-context', {})).toBe(texts[0]);
  });

  test.each([
    { name: 'greeting', args: {}, named: 'name' },
    { name: 'greeting', args: { name: 7 }, named: 'name' },
    { name: 'greeting', args: { name: 'A', style: 'rude' }, named: 'style' },
    { name: 'user-context', args: { messageType: 'nope' }, named: 'messageType' },
    { name: 'unknown-prompt', args: {}, named: 'unknown-prompt' },
    { name: 'constructor', args: {}, named: 'constructor' },
  ])('§2.6 prompts/get $name with $args: -32602 naming $named', async ({ name, args, named }) => {
    const { error } = await call('prompts/get', { name, arguments: args });
    expect(error.code).toBe(-32602);
    expect(error.data.details).toContain(named);
  });

  test('§2.6 prompts/get without arguments counts as none given', async () => {
    const { result } = await call('prompts/get', { name: 'user-context' });
    expect(result.messages).toHaveLength(1);
  });
});

describe('resources', () => {
  test('§2.7 resources/list describes both', async () => {
    const { resources } = (await call('resources/list')).result;
    const described = (uri: string, name: string) => ({
      uri,
      name,
      description: expect.any(String),
      mimeType: 'application/json',
    });
    expect(resources).toContainEqual(described('config://server', 'Server Configuration'));
    expect(resources).toContainEqual(described('user://profile', 'User Profile'));
  });

  test('§2.7 config://server holds name, version and environment', async () => {
    const { result } = await call('resources/read', { uri: 'config://server' });
    expect(result.contents).toHaveLength(1);
    const [{ uri, mimeType, text }] = result.contents;
    expect({ uri, mimeType }).toEqual({ uri: 'config://server', mimeType: 'application/json' });
    expect(JSON.parse(text)).toEqual({
      name: 'postern',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      environment: 'staging',
    });
  });

  test.each([
    { claims: {}, profile: {} },
    {
      claims: { email: 'a@example.com', name: 'Ada', groups: ['x', 'y'] },
      profile: { email: 'a@example.com', name: 'Ada', groups: ['x', 'y'] },
    },
    { claims: { email: 5, name: ['x'], groups: 'admins' }, profile: {} },
    { claims: { groups: ['x', 5] }, profile: {} },
  ])('§2.3 user://profile of a token with $claims holds $profile', async ({ claims, profile }) => {
    const token = await gateway.issuer.sign({ sub: 'ada', ...claims });
    const own = await gateway.open({ token });
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'resources/read',
      params: { uri: 'user://profile' },
    };
    const answer = await gateway.rpc(message, { token, session: own });
    expect(JSON.parse(answer.json.result.contents[0].text)).toEqual({ sub: 'ada', ...profile });
    expect(answer.text).not.toContain(token);
  });

  test('§2.7 an unknown resource: -32602 with data.details and data.uri', async () => {
    const { error } = await call('resources/read', { uri: 'config://other' });
    expect(error).toMatchObject({ code: -32602, data: { uri: 'config://other' } });
    expect(error.data.details).toContain('config://other');
  });
});
