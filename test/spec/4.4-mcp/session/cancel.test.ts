// notifications/cancelled: the call ends at once for the client, and its signal says so to the tool.
import { EventEmitter, once } from 'node:events';
import { beforeAll, describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../../src/index.ts';
import { ABLE, createAskingCatalog } from '../../../support/catalogs/session-asking-catalog.ts';
import type { EventStream } from '../../../support/clients/event-stream.ts';
import {
  clientOf,
  lastOf,
  openClient,
  type SessionClient,
} from '../../../support/clients/session-client.ts';
import { startGateway } from '../../../support/gateway/gateway.ts';
import { startTwoReplicas } from '../../../support/gateway/two-replicas.ts';
import { useShared } from '../../../support/lifetimes.ts';

/** `begun <key>`, `aborted <key>`; the test says `go <key>`. */
const events = new EventEmitter().setMaxListeners(0);

const keyed = {
  type: 'object',
  properties: { key: { type: 'string' }, log: { type: 'boolean' } },
  required: ['key'],
} as const;

const catalog = createLocalCatalog({
  logging: true,
  tools: [
    defineTool({
      name: 'ignores',
      description: 'Takes note of its signal, and goes on until it is let go.',
      inputSchema: keyed,
      async run({ key, log }, context) {
        const go = once(events, `go ${key}`);
        context.signal.addEventListener('abort', () => events.emit(`aborted ${key}`));
        if (log) context.log('info', key);
        events.emit(`begun ${key}`);
        await go;
        context.log('emergency', 'after it was cancelled');
        return { content: [{ type: 'text', text: key }] };
      },
    }),
    defineTool({
      name: 'heeds',
      description: 'Ends when it is cancelled.',
      inputSchema: keyed,
      run: ({ key }, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          events.emit(`begun ${key}`);
        }),
    }),
    defineTool({
      name: 'looks-late',
      description: 'Looks at its signal only when it is let go.',
      inputSchema: keyed,
      async run({ key }, context) {
        const go = once(events, `go ${key}`);
        events.emit(`begun ${key}`);
        await go;
        events.emit(`looked ${key}`, context.signal.aborted);
        return { content: [] };
      },
    }),
  ],
});

const pair = useShared(() => startTwoReplicas({ deps: { catalog } }));
let client: SessionClient;
beforeAll(async () => {
  client = await openClient(pair.one);
});

const CANCELLED = {
  code: -32000,
  message: 'Request cancelled',
  data: { reason: 'request_cancelled', details: expect.any(String) },
};

let serial = 0;

interface Held {
  readonly key: string;
  readonly answer: Promise<EventStream>;
  readonly aborted: Promise<unknown>;
  go(): void;
}

/** A call that runs, and whose signal is watched. */
async function held(
  id: string | number,
  by = client,
  tool = 'ignores',
  log = false,
): Promise<Held> {
  serial += 1;
  const key = `call ${serial}`;
  const [begun, aborted] = [once(events, `begun ${key}`), once(events, `aborted ${key}`)];
  const answer = by.call(tool, { key, log }, { id });
  await begun;
  return { key, answer, aborted, go: () => void events.emit(`go ${key}`) };
}

/** What a call answers that was left alone. */
const whole = (key: string) => ({ content: [{ type: 'text', text: key }] });

describe('notifications/cancelled', () => {
  test.each([1, 0, -7, 1.5, 'a', '', '1', 'ü"\n'])(
    '§4.4 it ends the call %j at once, even if the tool does not heed it',
    async (id) => {
      const call = await held(id);
      expect(await client.cancel(id)).toBe(202);
      await call.aborted;
      const answer = await call.answer;
      expect(answer.status).toBe(200);
      expect(await lastOf(answer)).toEqual({ jsonrpc: '2.0', error: CANCELLED, id });
      call.go();
    },
  );

  test('§4.4 a stream that has begun ends with the same error', async () => {
    const call = await held('streamed', client, 'ignores', true);
    const answer = await call.answer;
    expect(await answer.next()).toMatchObject({ params: { data: call.key } });
    await client.cancel('streamed');
    expect(await answer.rest()).toEqual([{ jsonrpc: '2.0', error: CANCELLED, id: 'streamed' }]);
    call.go();
  });

  test('§4.4 a tool that ends by the signal leaves the same answer', async () => {
    const call = await held('heeded', client, 'heeds');
    await client.cancel('heeded');
    expect(await lastOf(await call.answer)).toMatchObject({ error: CANCELLED });
  });

  test('§4.4 a tool that asks for its signal after it was cancelled finds it aborted', async () => {
    const call = await held('late', client, 'looks-late');
    await client.cancel('late');
    await call.answer;
    const looked = once(events, `looked ${call.key}`);
    call.go();
    expect(await looked).toEqual([true]);
  });

  test.each([
    { ends: 1, stays: '1' },
    { ends: '1', stays: 1 },
  ])('§4.4 $ends ends and $stays stays: they are two calls', async ({ ends, stays }) => {
    for (const order of [[ends, stays] as const, [stays, ends] as const]) {
      const calls = new Map([
        [order[0], await held(order[0])],
        [order[1], await held(order[1])],
      ]);
      const [ending, staying] = [calls.get(ends), calls.get(stays)];
      if (!ending || !staying) throw new Error('There is a call too few.');
      await client.cancel(ends);
      expect(await lastOf(await ending.answer)).toMatchObject({ error: CANCELLED, id: ends });
      staying.go();
      expect(await lastOf(await staying.answer)).toMatchObject({
        result: whole(staying.key),
        id: stays,
      });
      ending.go();
    }
  });

  test.each([
    { what: 'an unknown id', params: { requestId: 'unknown' } },
    { what: 'no id', params: {} },
    { what: 'no params', params: undefined },
    { what: 'an id that is none', params: { requestId: { id: 'kept' } } },
    { what: 'params that are a list', params: ['kept'] },
  ])('§4.4 with $what it is 202, and nothing happens', async ({ params }) => {
    const call = await held('kept');
    const answer = await client.send({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      ...(params && { params }),
    });
    expect(answer.status).toBe(202);
    expect(await answer.text()).toBe('');
    call.go();
    expect(await lastOf(await call.answer)).toMatchObject({ result: whole(call.key) });
  });

  test('§4.4 for a call that is over it is 202, and the next with its id lives', async () => {
    for (const round of ['cancelled', 'finished']) {
      const call = await held(`again ${round}`);
      if (round === 'finished') call.go();
      else await client.cancel(`again ${round}`);
      await lastOf(await call.answer);
      expect(await client.cancel(`again ${round}`)).toBe(202);
      const next = await held(`again ${round}`);
      // The end of the first call does not forget the second.
      call.go();
      await client.ask('ping');
      await client.cancel(`again ${round}`);
      expect(await lastOf(await next.answer)).toMatchObject({ error: CANCELLED });
      next.go();
      expect(await client.ask('ping')).toHaveProperty('result');
    }
  });

  test('§4.4 of two calls at once with one id the later ends first, then the earlier', async () => {
    const [earlier, later] = [await held('twice'), await held('twice')];
    for (const call of [later, earlier]) {
      await client.cancel('twice');
      await call.aborted;
      expect(await lastOf(await call.answer)).toMatchObject({ error: CANCELLED });
      call.go();
    }
  });

  test('§4.4 a second call with another id is not touched', async () => {
    const [first, second] = [await held('first'), await held('second')];
    await client.cancel('first');
    expect(await lastOf(await first.answer)).toMatchObject({ error: CANCELLED });
    second.go();
    expect(await lastOf(await second.answer)).toMatchObject({ result: whole(second.key) });
    first.go();
  });
});

describe('whose calls may be cancelled', () => {
  test('§3.1 the call of another session with the same id lives on, and no other user ends it', async () => {
    const sibling = await openClient(pair.one);
    const token = await pair.one.issuer.sign({ sub: 'mallory' });
    const mallory = clientOf(await pair.one.listen(), client.session, token);
    const [mine, theirs] = [await held('same'), await held('same', sibling)];
    expect(await mallory.cancel('same')).toBe(404);
    await client.cancel('same');
    expect(await lastOf(await mine.answer)).toMatchObject({ error: CANCELLED });
    theirs.go();
    expect(await lastOf(await theirs.answer)).toMatchObject({ result: whole(theirs.key) });
    mine.go();
  });
});

describe('cancelled through another replica', () => {
  test.each([5, '5', 'a "quoted" one'])('§4.4 the call %j ends', async (id) => {
    const call = await held(id);
    const elsewhere = await client.at(pair.other);
    expect(await elsewhere.cancel(id)).toBe(202);
    await call.aborted;
    expect(await lastOf(await call.answer)).toEqual({ jsonrpc: '2.0', error: CANCELLED, id });
    call.go();
    const next = await held(id, elsewhere);
    await client.cancel(id);
    expect(await lastOf(await next.answer)).toMatchObject({ error: CANCELLED });
    next.go();
  });

  test('§4.4 only the session’s own call, and only that id', async () => {
    const sibling = await openClient(pair.one);
    const [mine, theirs, text] = [await held(9), await held(9, sibling), await held('9')];
    await (await client.at(pair.other)).cancel(9);
    expect(await lastOf(await mine.answer)).toMatchObject({ error: CANCELLED });
    for (const call of [theirs, text]) {
      call.go();
      expect(await lastOf(await call.answer)).toMatchObject({ result: whole(call.key) });
    }
    mine.go();
  });
});

test('§4.4 a call that is cancelled while the client is asked ends, and asks no more', async () => {
  const asking = createAskingCatalog();
  const gateway = await startGateway({ deps: { catalog: asking.catalog } });
  try {
    const able = await openClient(gateway, { capabilities: ABLE });
    const stream = await able.call('asks', { kinds: ['form'] }, { id: 'asked' });
    const { id } = await stream.next();
    const refused = once(asking.events, 'refused');
    await able.cancel('asked');
    expect(String((await refused)[0])).toContain('cancelled');
    expect(await stream.rest()).toEqual([{ jsonrpc: '2.0', error: CANCELLED, id: 'asked' }]);
    expect(await able.answer(id, { action: 'decline' })).toBe(202);
  } finally {
    await gateway.close();
  }
});
