// MCP 2026-07-28 "Multi Round-Trip Requests": what asks the client, and its answers.
import { describe, expect, test } from 'vitest';
import {
  ADA,
  askingCatalog,
  FORM,
  PARIS,
  questionsIn,
  ROOTS,
  SAMPLE,
  saidIn,
  WHO,
} from '../../../support/catalogs/stateless-asking-catalog.ts';
import {
  accepted,
  askingCall,
  CLIENT_CAPABILITIES,
  eventsIn,
  type Retry,
  SERVER_INFO,
  stateless,
} from '../../../support/clients/stateless.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const gateway = useGateway({ deps: { catalog: askingCatalog } });

const call = (name: string, retry: Retry = {}) => askingCall(gateway, name, retry);

describe('a tool asks the client', () => {
  test('§15 it is a result of its own, with the server’s name and nothing of the tool’s', async () => {
    const { status, headers, json } = await call('once');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json');
    expect(json).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: {
        resultType: 'input_required',
        inputRequests: {
          who: {
            method: 'elicitation/create',
            params: { message: 'Who are you?', requestedSchema: FORM },
          },
        },
        requestState: expect.any(String),
        _meta: { [SERVER_INFO]: expect.objectContaining({ name: 'postern' }) },
      },
    });
  });

  test('§15 the state does not show what is in it', async () => {
    const first = questionsIn(await call('rounds'));
    const second = await call('rounds', {
      inputResponses: { who: accepted({ name: 'Rumpelstiltskin' }) },
      requestState: first.requestState,
    });
    const state = Buffer.from(questionsIn(second).requestState, 'base64url').toString('latin1');
    expect(state).not.toContain('Rumpel');
    expect(state).not.toContain('"who"');
  });

  test('§15 the answer comes by its key, with the state that asked', async () => {
    const { requestState } = questionsIn(await call('once'));
    const inputResponses = { who: accepted({ name: 'Ada', age: 36 }) };
    const answer = await call('once', { inputResponses, requestState });
    expect(answer.json.result.resultType).toBe('complete');
    expect(saidIn(answer)).toEqual({ who: accepted({ name: 'Ada', age: 36 }) });
  });

  test('§15 several are asked at once, and those without an answer again', async () => {
    const first = questionsIn(await call('several'));
    expect(first.inputRequests).toEqual({
      who: expect.objectContaining({ method: 'elicitation/create' }),
      capital: { method: 'sampling/createMessage', params: SAMPLE },
      folders: { method: 'roots/list', params: {} },
    });
    const second = questionsIn(
      await call('several', {
        inputResponses: { who: ADA, capital: PARIS },
        requestState: first.requestState,
      }),
    );
    expect(Object.keys(second.inputRequests)).toEqual(['folders']);
    expect(second.requestState).not.toBe(first.requestState);
    const last = await call('several', {
      inputResponses: { folders: ROOTS },
      requestState: second.requestState,
    });
    expect(saidIn(last)).toEqual({ who: ADA, capital: PARIS, folders: ROOTS });
  });

  test('§15 two rounds: the second knows the first, which the client cannot change', async () => {
    const first = questionsIn(await call('rounds'));
    const second = questionsIn(
      await call('rounds', { inputResponses: { who: ADA }, requestState: first.requestState }),
    );
    expect(second.inputRequests).toMatchObject({
      sure: { params: { message: 'Are you sure, Ada?' } },
    });
    expect(second.inputRequests).not.toHaveProperty('who');
    expect(second.requestState).not.toBe(first.requestState);
    const yes = accepted({ name: 'yes' });
    const last = await call('rounds', {
      inputResponses: { who: accepted({ name: 'Eve' }), sure: yes },
      requestState: second.requestState,
    });
    expect(saidIn(last)).toEqual({ who: ADA, sure: yes });
  });

  test('§15 keys that every object has are keys like others', async () => {
    const first = questionsIn(await call('born'));
    expect(Object.keys(first.inputRequests)).toEqual(['constructor']);
    const second = questionsIn(
      await call('born', {
        inputResponses: { constructor: ADA },
        requestState: first.requestState,
      }),
    );
    expect(Object.keys(second.inputRequests)).toEqual(['toString']);
    const last = await call('born', {
      inputResponses: { toString: ADA },
      requestState: second.requestState,
    });
    expect(last.json.result.resultType).toBe('complete');
    expect(saidIn(last)).toEqual({ first: ADA, second: ADA });
  });

  test('§15 a tool that swallows what ask() throws is asked for all the same', async () => {
    const { inputRequests, requestState } = questionsIn(await call('swallows'));
    expect(inputRequests).toHaveProperty('who');
    const retry = { inputResponses: { who: ADA }, requestState };
    expect(saidIn(await call('swallows', retry))).toEqual({ who: ADA });
  });

  test('§4.11 a call that ends in a question is no invocation yet', async () => {
    const counted = async () => {
      const { text } = await gateway.request({ path: '/metrics' });
      return text.match(/^mcp_tool_invocations_total\{.*tool="(again|swallows)".*$/gm) ?? [];
    };
    const before = await counted();
    questionsIn(await call('again'));
    questionsIn(await call('swallows'));
    expect(await counted()).toEqual(before);
  });

  test('§15 what is said before it makes a stream, and the question ends it', async () => {
    const { headers, text } = await askingCall(
      gateway,
      'talks',
      {},
      { meta: { progressToken: 't' }, headers: { accept: 'application/json, text/event-stream' } },
    );
    expect(headers['content-type']).toBe('text/event-stream');
    expect(eventsIn(text)).toMatchObject([
      { method: 'notifications/progress', params: { progressToken: 't', progress: 1 } },
      { id: 1, result: { resultType: 'input_required', inputRequests: { who: WHO } } },
    ]);
  });
});

describe('prompts and resources ask, too', () => {
  test.each([
    { method: 'prompts/get', params: { name: 'asks' } },
    { method: 'resources/read', params: { uri: 'test://asks' } },
  ])('§15 $method asks, then answers', async ({ method, params }) => {
    const meta = { [CLIENT_CAPABILITIES]: { elicitation: {} } };
    const first = await stateless(gateway, method, params, { meta });
    const { inputRequests, requestState } = questionsIn(first);
    expect(inputRequests).toMatchObject({ who: WHO });
    expect(first.json.result).not.toHaveProperty('ttlMs');
    expect(first.json.result).not.toHaveProperty('cacheScope');
    const retry = { ...params, inputResponses: { who: ADA }, requestState };
    const { json } = await stateless(gateway, method, retry, { meta });
    expect(json.result.resultType).toBe('complete');
    expect(JSON.stringify(json.result)).toContain('Ada');
  });
});
