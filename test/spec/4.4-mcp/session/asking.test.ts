// Questions of tools to clients of the session era: requests on the stream, answers by POST.
import { once } from 'node:events';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  ABLE,
  createAskingCatalog,
  FORM,
  SAMPLE,
} from '../../../support/catalogs/session-asking-catalog.ts';
import {
  clientOf,
  lastOf,
  openClient,
  type SessionClient,
} from '../../../support/clients/session-client.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const { catalog, events } = createAskingCatalog();
const gateway = useGateway({ deps: { catalog } });
let client: SessionClient;
beforeAll(async () => {
  client = await openClient(gateway, { capabilities: ABLE });
});

const ADA = { action: 'accept', content: { name: 'Ada', age: 36 } };
const HELLO = {
  role: 'assistant',
  content: { type: 'text', text: 'Hello.' },
  model: 'a-model',
  stopReason: 'endTurn',
};
const ROOTS = { roots: [{ uri: 'file:///home/ada', name: 'Home' }] };
const QUESTION = {
  form: {
    method: 'elicitation/create',
    params: { message: 'Who are you?', requestedSchema: FORM },
  },
  model: { method: 'sampling/createMessage', params: SAMPLE },
  roots: { method: 'roots/list', params: {} },
} as const;
const answers = (value: unknown) => ({
  content: [{ type: 'text', text: JSON.stringify(value) }],
});
const asks = (...kinds: readonly (keyof typeof QUESTION)[]) => client.call('asks', { kinds });

describe('requests to the client', () => {
  test.each([
    { kind: 'form', answer: ADA },
    { kind: 'form', answer: { action: 'decline' } },
    { kind: 'form', answer: { action: 'cancel' } },
    { kind: 'model', answer: HELLO },
    { kind: 'model', answer: { ...HELLO, content: [HELLO.content, HELLO.content] } },
    { kind: 'roots', answer: ROOTS },
    { kind: 'roots', answer: { roots: [] } },
  ] as const)(
    '§4.4 a $kind is asked for on the stream, and $answer reaches the tool',
    async (row) => {
      const stream = await asks(row.kind);
      const question = await stream.next();
      expect(question).toEqual({ jsonrpc: '2.0', id: expect.any(String), ...QUESTION[row.kind] });
      expect(await client.answer(question.id, row.answer)).toBe(202);
      expect(await stream.rest()).toEqual([
        { jsonrpc: '2.0', id: 1, result: answers({ [row.kind]: row.answer }) },
      ]);
    },
  );

  test('§4.4 a capability that is declared by an empty array counts, as PHP writes an empty object', async () => {
    const php = await openClient(gateway, { capabilities: { elicitation: [], sampling: [] } });
    const stream = await php.call('asks', { kinds: ['form', 'model'] });
    const methods = [await stream.next(), await stream.next()].map(({ method }) => method);
    expect(methods).toEqual(['elicitation/create', 'sampling/createMessage']);
    await php.cancel(1);
    await stream.rest();
  });

  test('§4.4 several questions are asked at once, and answered in any order', async () => {
    const stream = await asks('form', 'model', 'roots');
    const asked = [await stream.next(), await stream.next(), await stream.next()];
    expect(asked.map(({ method }) => method)).toEqual(
      Object.values(QUESTION).map(({ method }) => method),
    );
    const ids: readonly string[] = asked.map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    await client.answer(ids[2], ROOTS);
    await client.answer(ids[0], ADA);
    await client.answer(ids[1], HELLO);
    expect(await stream.rest()).toEqual([
      { jsonrpc: '2.0', id: 1, result: answers({ form: ADA, model: HELLO, roots: ROOTS }) },
    ]);
  });

  test('§4.4 questions, messages and further questions share one stream', async () => {
    const stream = await client.call('asks-twice');
    expect(await stream.next()).toMatchObject({ params: { data: 'first' } });
    const first = await stream.next();
    await client.answer(first.id, ADA);
    expect(await stream.next()).toMatchObject({ params: { data: 'second' } });
    const second = await stream.next();
    expect(second.id).not.toBe(first.id);
    // An answer that comes twice is none to the next question.
    expect(await client.answer(first.id, { action: 'cancel' })).toBe(202);
    await client.answer(second.id, { action: 'decline' });
    expect(await lastOf(stream)).toMatchObject({ result: answers([ADA, { action: 'decline' }]) });
  });

  test('§4.4 two calls that ask the same at once each get their own answer', async () => {
    const ask = (id: number) => client.call('asks', { kinds: ['form'] }, { id });
    const [one, other] = await Promise.all([ask(1), ask(2)]);
    const [toOne, toOther] = [await one.next(), await other.next()];
    await client.answer(toOther.id, { action: 'decline' });
    await client.answer(toOne.id, ADA);
    expect(await lastOf(one)).toMatchObject({ id: 1, result: answers({ form: ADA }) });
    expect(await lastOf(other)).toMatchObject({
      id: 2,
      result: answers({ form: { action: 'decline' } }),
    });
  });

  test('§4.4 a prompt may ask as well', async () => {
    const stream = await client.send({
      jsonrpc: '2.0',
      id: 'p',
      method: 'prompts/get',
      params: { name: 'asks-roots' },
    });
    await client.answer((await stream.next()).id, ROOTS);
    expect(await lastOf(stream)).toMatchObject({
      id: 'p',
      result: { messages: [{ content: { text: 'file:///home/ada' } }] },
    });
  });
});

describe('replies that answer nothing', () => {
  test('§4.4 an error of the client is -32603 for the call, with a sentence', async () => {
    const stream = await asks('model');
    const { id } = await stream.next();
    const answer = await client.send({ jsonrpc: '2.0', id, error: { code: -1, message: 'No.' } });
    expect(answer.status).toBe(202);
    expect(await answer.text()).toBe('');
    const { error } = await lastOf(stream);
    expect(error).toMatchObject({ code: -32603, message: 'Tool execution failed' });
    expect(error.data.details).toMatch(/client answered with an error/);
  });

  test('§2.4 a tool may do without an answer', async () => {
    const stream = await client.call('makes-do');
    const { id } = await stream.next();
    await client.send({ jsonrpc: '2.0', id, error: { code: -1, message: 'No.' } });
    expect(await lastOf(stream)).toMatchObject({ result: answers('without an answer') });
  });

  test.each([
    { kind: 'form', answer: {}, names: 'action' },
    { kind: 'form', answer: { action: 'maybe' }, names: 'action' },
    { kind: 'form', answer: { action: 'accept' }, names: 'content' },
    { kind: 'form', answer: { action: 'accept', content: { age: 1 } }, names: 'name' },
    { kind: 'form', answer: { action: 'accept', content: { name: 'A', age: -1 } }, names: 'age' },
    { kind: 'form', answer: { action: 'accept', content: [] }, names: 'content' },
    { kind: 'form', answer: 'accept', names: 'object' },
    { kind: 'form', answer: null, names: 'object' },
    { kind: 'form', answer: [ADA], names: 'object' },
    { kind: 'model', answer: { role: 'assistant', model: 'm' }, names: 'content' },
    { kind: 'model', answer: { ...HELLO, content: 'Hello.' }, names: 'content' },
    { kind: 'model', answer: { role: 'assistant', content: HELLO.content }, names: 'model' },
    { kind: 'roots', answer: {}, names: 'roots' },
    { kind: 'roots', answer: { roots: 'file:///' }, names: 'roots' },
    { kind: 'roots', answer: { roots: [{ name: 'no uri' }, 1] }, names: 'roots' },
  ] as const)('§4.4 the answer $answer to a $kind is refused, and says why', async (row) => {
    const stream = await asks(row.kind);
    const { id } = await stream.next();
    expect(await client.answer(id, row.answer)).toBe(202);
    const { error } = await lastOf(stream);
    expect(error.code).toBe(-32602);
    expect(error.data.details).toContain(row.names);
    expect(error.data.details).toContain(row.kind);
  });

  test.each(['no-such-id', 7, null, { id: 1 }, ''])(
    '§4.4 an answer under the id %j is 202, and nothing happens',
    async (id) => {
      const stream = await asks('form');
      const question = await stream.next();
      expect(await client.answer(id, { action: 'cancel' })).toBe(202);
      await client.answer(question.id, ADA);
      expect(await lastOf(stream)).toMatchObject({ result: answers({ form: ADA }) });
    },
  );

  test('§3.1 another user cannot answer, and another session cannot either', async () => {
    const stream = await asks('form');
    const { id } = await stream.next();
    const port = await gateway.listen();
    const token = await gateway.issuer.sign({ sub: 'mallory' });
    const mallory = await openClient(gateway, { token, capabilities: ABLE });
    const forged = { action: 'accept', content: { name: 'Mallory' } };
    // With the session's own id, from a session of hers, and from another session of the user.
    expect(await clientOf(port, client.session, token).answer(id, forged)).toBe(404);
    expect(await mallory.answer(id, forged)).toBe(202);
    expect(await (await openClient(gateway)).answer(id, forged)).toBe(202);
    await client.answer(id, ADA);
    expect(await lastOf(stream)).toMatchObject({ result: answers({ form: ADA }) });
  });

  test('§4.4 an answer does not need a stream of its own, nor more than the session', async () => {
    const stream = await asks('form');
    const { id } = await stream.next();
    const { status, text } = await gateway.rpc(
      { jsonrpc: '2.0', id, result: ADA },
      { session: client.session, token: client.token },
    );
    expect({ status, text }).toEqual({ status: 202, text: '' });
    expect(await lastOf(stream)).toMatchObject({ result: answers({ form: ADA }) });
  });
});

describe('clients that cannot be asked', () => {
  test.each([
    { capabilities: {}, kinds: ['form'], names: 'elicitation' },
    { capabilities: { elicitation: { url: {} } }, kinds: ['form'], names: 'elicitation' },
    { capabilities: { elicitation: {} }, kinds: ['form', 'model'], names: 'sampling' },
    { capabilities: { elicitation: {}, sampling: {} }, kinds: ['roots', 'form'], names: 'roots' },
    {
      capabilities: { sampling: true, roots: 'yes' },
      kinds: ['model', 'roots'],
      names: 'sampling, roots',
    },
  ])('§4.4 with $capabilities $kinds is -32603, and nothing is sent', async (row) => {
    const unable = await openClient(gateway, { capabilities: row.capabilities });
    const answer = await unable.call('asks', { kinds: row.kinds });
    expect(answer.status).toBe(200);
    expect(answer.isStream).toBe(false);
    const { error } = await lastOf(answer);
    expect(error).toMatchObject({ code: -32603, message: 'Tool execution failed' });
    expect(error.data.details).toContain(row.names);
  });

  test.each([{ elicitation: { form: {} } }, { elicitation: { form: {}, url: {} } }])(
    '§4.4 with %j a form is asked for',
    async (capabilities) => {
      const able = await openClient(gateway, { capabilities });
      const stream = await able.call('asks', { kinds: ['form'] });
      await able.answer((await stream.next()).id, ADA);
      expect(await lastOf(stream)).toMatchObject({ result: answers({ form: ADA }) });
    },
  );

  test.each(['application/json', '*/*'])(
    '§4.4 a client that takes %s only is not asked: -32603',
    async (accept) => {
      const answer = await client.call('asks', { kinds: ['form'] }, { headers: { accept } });
      expect(answer.isStream).toBe(false);
      const { error } = await lastOf(answer);
      expect(error).toMatchObject({ code: -32603, message: 'Tool execution failed' });
      expect(error.data.details).toContain('text/event-stream');
    },
  );

  test('§4.4 a client that hangs up while it is asked, and cannot come back, aborts the call', async () => {
    const old = await openClient(gateway, { capabilities: ABLE, protocolVersion: '2024-11-05' });
    const stream = await old.call('asks', { kinds: ['form'] });
    await stream.next();
    const [aborted, refused] = [once(events, 'aborted'), once(events, 'refused')];
    stream.hangUp();
    await aborted;
    const [error] = await refused;
    expect(String(error)).toContain('The client disconnected');
  });
});
