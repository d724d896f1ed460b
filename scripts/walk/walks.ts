// The calls that are walked through.
import { type Stage, stageBroker, stageCall, stageInitialize, stageRelay } from './gateways.ts';

export interface Walk {
  readonly name: string;
  readonly title: string;
  readonly start: () => Promise<Stage>;
}

export const WALKS: readonly Walk[] = [
  {
    name: 'tools/call',
    title: 'a built-in tool, in a session',
    start: () => stageCall('tools/call', { name: 'service_ping', arguments: { message: 'hello' } }),
  },
  {
    name: 'relay',
    title: 'tools/call of a server over streamable HTTP, in a session',
    start: stageRelay,
  },
  {
    name: 'tools/list',
    title: 'the built-in catalogue, in a session',
    start: () => stageCall('tools/list'),
  },
  { name: 'initialize', title: 'a new session', start: stageInitialize },
  {
    name: 'token',
    title: 'POST /oauth/token with a code, in broker mode',
    start: () =>
      stageBroker(async (steps, client) => {
        const back = await steps.logIn(client);
        return () => steps.redeem(client, back);
      }),
  },
  {
    name: 'authorize',
    title: 'GET /oauth/authorize by a new browser, in broker mode',
    start: () => stageBroker(async (steps, client) => () => steps.authorize(client)),
  },
];
