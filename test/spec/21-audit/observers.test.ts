// Whoever is told of calls and logins may fail: the call or login does not.
import { expect, onTestFinished, test } from 'vitest';
import { fail } from '../../../src/errors/gateway-error.ts';
import { observeLogins } from '../../../src/logins/request/login-facts.ts';
import type { CallRecord } from '../../../src/mcp/calls/call.ts';
import { joinObservers } from '../../../src/mcp/calls/observe-calls.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';

const breakDown = () => {
  throw new Error('broken');
};

test('§21.1 audit: an observer of logins that throws changes no reply and no error, and others are told', async () => {
  const { log, lines } = collectLog();
  const told: unknown[] = [];
  const observers = [breakDown, ({ failure }: { failure: unknown }) => void told.push(failure)];
  const judge = async (_request: unknown, body: unknown) => {
    if (body === 'refused') fail('client_not_found');
    return async () => ({ status: 204 });
  };
  const endpoint = {
    kind: 'public',
    path: '/oauth/register',
    method: 'POST',
    limit: 'other',
    judge,
  };
  const [observed] = observeLogins({ clock: systemClock, log }, [endpoint as never], observers);
  if (observed?.kind !== 'public') throw new Error('It is public');
  const judged = await observed.judge({} as never, {} as never);
  if ('runAnonymous' in judged) throw new Error('It is of a client');
  const reply = await judged();
  expect(reply.status).toBe(204);
  await expect(observed.judge({} as never, 'refused' as never)).rejects.toMatchObject({
    key: 'client_not_found',
  });
  expect(told).toEqual([undefined, expect.objectContaining({ key: 'client_not_found' })]);
  expect(lines.map(({ msg }) => msg)).toEqual(
    Array(2).fill(expect.stringContaining('A login was not audited')),
  );
});

test('§21.1 audit: of two lines of a start that cannot be written, both failures belong to the call', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  let reject: (reason: Error) => void = breakDown;
  const slow = new Promise<void>((_, no) => {
    reject = no;
  });
  const { start } = joinObservers(
    [{ start: () => slow }, { start: () => Promise.reject(new Error('full')) }],
    collectLog().log,
  );
  const failing = expect(start({} as CallRecord)).rejects.toThrow('full');
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
  await failing;
  reject(new Error('late'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});
