// Answers that arrive at another replica, and those that never arrive.
import { beforeAll, describe, expect, test } from 'vitest';
import { ABLE, createAskingCatalog } from '../../../support/catalogs/session-asking-catalog.ts';
import {
  clientOf,
  lastOf,
  openClient,
  type SessionClient,
} from '../../../support/clients/session-client.ts';
import { advanceSlowly, type ManualClock, manualClock } from '../../../support/gateway/clock.ts';
import { startTwoReplicas } from '../../../support/gateway/two-replicas.ts';
import { useFreshGateway } from '../../../support/gateway/use-gateway.ts';
import { useShared } from '../../../support/lifetimes.ts';

const ADA = { action: 'accept', content: { name: 'Ada' } };
const FORGED = { action: 'accept', content: { name: 'Mallory' } };
const answers = (value: unknown) => ({
  content: [{ type: 'text', text: JSON.stringify(value) }],
});

describe('answers that reach another replica', () => {
  const { catalog } = createAskingCatalog();
  const pair = useShared(() => startTwoReplicas({ deps: { catalog } }));
  let client: SessionClient;
  let elsewhere: SessionClient;
  beforeAll(async () => {
    client = await openClient(pair.one, { capabilities: ABLE });
    elsewhere = await client.at(pair.other);
  });

  test.each([
    { from: 'one replica', asking: () => client, answering: () => elsewhere },
    { from: 'the other', asking: () => elsewhere, answering: () => client },
  ])('§16 a question from $from is answered at the other', async ({ asking, answering }) => {
    const stream = await asking().call('asks', { kinds: ['form', 'roots'] });
    const [form, roots] = [await stream.next(), await stream.next()];
    expect(await answering().answer(roots.id, { roots: [] })).toBe(202);
    expect(await answering().answer(form.id, ADA)).toBe(202);
    expect(await lastOf(stream)).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: answers({ form: ADA, roots: { roots: [] } }),
    });
  });

  test('§16 an error of the client reaches the tool from the other replica', async () => {
    const stream = await client.call('asks', { kinds: ['form'] });
    const { id } = await stream.next();
    await elsewhere.send({ jsonrpc: '2.0', id, error: { code: -1, message: 'No.' } });
    const { error } = await lastOf(stream);
    expect(error).toMatchObject({ code: -32603 });
    expect(error.data.details).toMatch(/answered with an error/);
  });

  test('§3.1 nobody else answers from the other replica either', async () => {
    const stream = await client.call('asks', { kinds: ['form'] });
    const { id } = await stream.next();
    const token = await pair.one.issuer.sign({ sub: 'mallory' });
    const port = await pair.other.listen();
    const mallory = await (await openClient(pair.one, { token })).at(pair.other);
    expect(await clientOf(port, client.session, token).answer(id, FORGED)).toBe(404);
    expect(await mallory.answer(id, FORGED)).toBe(202);
    expect(await elsewhere.answer('unknown', FORGED)).toBe(202);
    // Words of one replica arrive in their order: the forged ones came first.
    await elsewhere.answer(id, ADA);
    expect(await lastOf(stream)).toMatchObject({ result: answers({ form: ADA }) });
  });
});

describe('answers that never come', () => {
  const { catalog, events } = createAskingCatalog();
  let clock: ManualClock;
  const gateway = useFreshGateway(() => {
    clock = manualClock();
    return { deps: { catalog, clock } };
  });

  test('§16 a question is open for 300 s, then the call is -32603', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('asks', { kinds: ['form', 'roots'] });
    const [form, roots] = [await stream.next(), await stream.next()];
    expect(await client.answer(roots.id, { roots: [] })).toBe(202);
    let refused = false;
    events.once('refused', () => {
      refused = true;
    });
    await advanceSlowly(clock, 299_999);
    // Whatever the clock set off has run when the next answer is here.
    await client.ask('ping');
    expect(refused).toBe(false);
    clock.advance(1);
    const { error } = await lastOf(stream);
    expect(error).toMatchObject({ code: -32603, message: 'Tool execution failed' });
    expect(error.data.details).toContain('300 s');
    expect(await client.answer(form.id, ADA)).toBe(202);
  });

  test('§16 an answer in the last moment counts, and time that passes after it does not', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('asks-twice');
    await stream.next();
    const first = await stream.next();
    await advanceSlowly(clock, 299_999);
    await client.answer(first.id, ADA);
    await stream.next();
    const second = await stream.next();
    await advanceSlowly(clock, 299_999);
    await client.answer(second.id, ADA);
    expect(await lastOf(stream)).toMatchObject({ result: answers([ADA, ADA]) });
  });

  test('§4.3 a gateway that closes does not wait for an answer, and says so', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('asks', { kinds: ['form'] });
    await stream.next();
    // The clock stands still: no grace period is over.
    await gateway.gateway.close();
    const { error } = await lastOf(stream);
    expect(error.data.details).toBe('The service is stopping; call again.');
  });
});
