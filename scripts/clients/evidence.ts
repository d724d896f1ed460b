// Findings about a client from its exchanges with the gateway.
import type { Exchange } from './recorder.ts';

export type Evidence = (seen: readonly Exchange[]) => boolean;

export const isRegistration = ({ path, status }: Exchange) =>
  path === '/oauth/register' && status === 201;
export const isTokenAnswer = ({ path, status }: Exchange) =>
  path === '/oauth/token' && status === 200;
const isGood = ({ status, answer }: Exchange) => status === 200 && !answer.includes('"error"');

export const isLoggedIn: Evidence = (seen) =>
  seen.some((one) => isTokenAnswer(one) && one.grant === 'authorization_code');
export const hasAsked: Evidence = (seen) => seen.some(({ path }) => path === '/oauth/authorize');
export const hasRefreshed: Evidence = (seen) =>
  seen.some((one) => isTokenAnswer(one) && one.grant === 'refresh_token');
export const hasListed: Evidence = (seen) =>
  seen.some(
    (one) => one.rpc === 'tools/list' && isGood(one) && one.answer.includes('service_ping'),
  );
export const hasCalled: Evidence = (seen) =>
  seen.some((one) => one.rpc === 'tools/call' && isGood(one) && one.answer.includes(': hello'));
/** All of it, and without a new login. */
export const withoutNewLogin =
  (...tests: readonly Evidence[]): Evidence =>
  (seen) =>
    tests.every((test) => test(seen)) && !hasAsked(seen);
