// MCP 2026-07-28 "Multi Round-Trip Requests": what clients answer, and what they cannot be asked.
import { describe, expect, test } from 'vitest';
import {
  ADA,
  askingCatalog,
  PARIS,
  questionsIn,
  ROOTS,
  saidIn,
  WHO,
} from '../../../support/catalogs/stateless-asking-catalog.ts';
import {
  accepted,
  answeringCall,
  askingCall,
  CLIENT_CAPABILITIES,
  type Retry,
} from '../../../support/clients/stateless.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const gateway = useGateway({ deps: { catalog: askingCatalog } });

const call = (name: string, retry: Retry = {}) => askingCall(gateway, name, retry);
const answer = (name: string, inputResponses: object) =>
  answeringCall(gateway, name, { inputResponses });

describe('answers to what a tool asked', () => {
  test.each<{ what: string; inputResponses: object }>([
    { what: 'none', inputResponses: {} },
    { what: 'one of a wrong key', inputResponses: { Who: ADA } },
    { what: 'one of an inherited key', inputResponses: { constructor: ADA, toString: ADA } },
  ])('§15 $what: asked again', async ({ inputResponses }) => {
    const { requestState } = questionsIn(await call('once'));
    for (const retry of [{ inputResponses, requestState }, { inputResponses }]) {
      expect(questionsIn(await call('once', retry)).inputRequests).toMatchObject({ who: WHO });
    }
  });

  test('§15 those that nobody asked for are left alone, whatever they are', async () => {
    const inputResponses = { who: ADA, other: 5, more: null };
    expect(saidIn(await answer('once', inputResponses))).toEqual({ who: ADA });
  });

  test('§15 without the state that asked they do not count: the user has seen no form', async () => {
    for (const inputResponses of [{ who: ADA }, { who: 'Ada' }]) {
      const { inputRequests } = questionsIn(await call('once', { inputResponses }));
      expect(inputRequests).toMatchObject({ who: WHO });
    }
  });

  test('§15 with a state that asked something else they do not count either', async () => {
    const first = questionsIn(await call('rounds'));
    const sure = accepted({ name: 'yes' });
    // `sure` is asked in the second round, and has been seen by nobody yet.
    const second = questionsIn(
      await call('rounds', {
        inputResponses: { who: ADA, sure },
        requestState: first.requestState,
      }),
    );
    expect(Object.keys(second.inputRequests)).toEqual(['sure']);
    const last = await call('rounds', {
      inputResponses: { sure },
      requestState: second.requestState,
    });
    expect(saidIn(last)).toEqual({ who: ADA, sure });
  });

  test.each(['decline', 'cancel'])('§15 %s reaches the tool', async (action) => {
    const inputResponses = { who: { action } };
    expect(saidIn(await answer('once', inputResponses))).toEqual({ who: { action } });
    expect(saidIn(await answer('rounds', inputResponses))).toEqual({ who: { action } });
  });

  test.each<{ key: string; answer: unknown }>([
    { key: 'who', answer: 5 },
    { key: 'who', answer: null },
    { key: 'who', answer: 'Ada' },
    { key: 'who', answer: [ADA] },
    { key: 'who', answer: {} },
    { key: 'who', answer: { content: { name: 'Ada' } } },
    { key: 'who', answer: { action: 'Accept', content: { name: 'Ada' } } },
    { key: 'who', answer: { action: 'accept' } },
    { key: 'who', answer: { action: 'accept', content: null } },
    { key: 'who', answer: { action: 'accept', content: 'Ada' } },
    { key: 'who', answer: accepted({}) },
    { key: 'who', answer: accepted({ name: 5 }) },
    { key: 'who', answer: accepted({ name: 'A' }) },
    { key: 'who', answer: accepted({ name: 'Ada', age: 1.5 }) },
    { key: 'who', answer: accepted({ name: 'Ada', extra: true }) },
    { key: 'capital', answer: {} },
    { key: 'capital', answer: { role: 'assistant', content: 'Paris', model: 'm' } },
    { key: 'folders', answer: {} },
    { key: 'capital', answer: { role: 'assistant', content: PARIS.content } },
    { key: 'capital', answer: { content: PARIS.content, model: 'm' } },
    { key: 'folders', answer: { roots: 'file:///' } },
    { key: 'folders', answer: { roots: [{ name: 'no uri' }] } },
    { key: 'folders', answer: { roots: [...ROOTS.roots, 1] } },
  ])('§7.1 $key: $answer: -32602 that names the key', async ({ key, answer: wrong }) => {
    const given = { who: ADA, capital: PARIS, folders: ROOTS, [key]: wrong };
    const { status, json } = await answer('several', given);
    expect(status).toBe(200);
    expect(json).toMatchObject({ error: { code: -32602 }, id: 1 });
    expect(json.error.data.details).toContain(`"${key}"`);
    // Also where others are still to come.
    const alone = await answer('several', { [key]: wrong });
    expect(alone.json.error?.data.details).toContain(`"${key}"`);
  });

  test.each<{ inputResponses: unknown }>([
    { inputResponses: null },
    { inputResponses: [ADA] },
    { inputResponses: 'x' },
  ])('§7.1 $inputResponses in place of an object: -32602', async (retry) => {
    const { status, json } = await call('once', retry);
    expect(status).toBe(200);
    expect(json).toMatchObject({ error: { code: -32602 }, id: 1 });
    expect(json.error.data.details).toContain('inputResponses');
  });
});

describe('a client is not asked for what it did not declare', () => {
  test.each([
    { tool: 'once', declared: {}, lacking: ['elicitation'] },
    { tool: 'once', declared: { elicitation: { url: {} } }, lacking: ['elicitation'] },
    { tool: 'once', declared: { elicitation: null }, lacking: ['elicitation'] },
    { tool: 'once', declared: { elicitation: true }, lacking: ['elicitation'] },
    { tool: 'once', declared: { sampling: {}, roots: {} }, lacking: ['elicitation'] },
    { tool: 'several', declared: {}, lacking: ['elicitation', 'sampling', 'roots'] },
    { tool: 'several', declared: { elicitation: {}, roots: {} }, lacking: ['sampling'] },
    { tool: 'several', declared: { elicitation: { form: {} }, sampling: {} }, lacking: ['roots'] },
  ])('§7.1 $tool with $declared: 400 -32021, $lacking', async ({ tool, declared, lacking }) => {
    const meta = { [CLIENT_CAPABILITIES]: declared };
    const { status, json } = await askingCall(gateway, tool, {}, { meta });
    expect(status).toBe(400);
    expect(json.result).toBeUndefined();
    expect(json).toMatchObject({
      error: { code: -32021, message: 'Missing required client capability' },
      id: 1,
    });
    expect(json.error.data.requiredCapabilities).toEqual(
      Object.fromEntries(lacking.map((name) => [name, {}])),
    );
  });

  test.each([
    { elicitation: {} },
    { elicitation: { form: {} } },
    { elicitation: { form: {}, url: {} } },
  ])('§15 forms are declared by $elicitation', async (declared) => {
    const meta = { [CLIENT_CAPABILITIES]: declared };
    questionsIn(await askingCall(gateway, 'once', {}, { meta }));
  });
});
