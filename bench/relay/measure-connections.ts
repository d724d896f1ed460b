// What a call costs that goes to a server with a token of its user's own, beside one with a fixed header: two services that differ
// in this alone, in alternating rounds.
import { createBrowser } from '../../test/support/connections/browser.ts';
import { connect } from '../../test/support/connections/connect-steps.ts';
import { KEEPS_TO_MCP } from '../../test/support/connections/habits.ts';
import {
  MADE_CLIENT,
  startProtectedServer,
} from '../../test/support/connections/protected-server.ts';
import { createHttpRequest } from '../../test/support/gateway/http-request.ts';
import { createOwnTokenLogins } from '../../test/support/oauth/own-tokens.ts';
import { startOpaqueProvider } from '../../test/support/providers/opaque-provider.ts';
import { createCall } from '../calls.ts';
import { checkAnswers } from '../check-answers.ts';
import { type Contestant, type Era, runPostern } from '../contestants.ts';
import { judgeAtMost, renderGoal } from '../goals.ts';
import type { Options } from '../options.ts';
import { computeFigures, computeRatio } from '../results.ts';
import { type Runner, runRounds } from '../rounds.ts';
import { openTestbed } from '../testbed.ts';
import { runWrk } from '../wrk.ts';
import { nameInFile, startUpstream } from './upstreams.ts';

/** A call through a connection may cost this much of one with a fixed header. */
const MOST = 1.05;
const STORES = ['embedded', 'redis'] as const;
const ERAS = ['session', 'stateless'] as const;

export async function measureConnections({ plan }: Options): Promise<void> {
  const testbed = await openTestbed();
  const provider = await startOpaqueProvider();
  const login = await startProtectedServer({
    habits: { ...KEEPS_TO_MCP, resource: 'ignored', expiresIn: 86_400 },
  });
  const upstream = await startUpstream('session');
  const lines = {
    header: { url: upstream.url, prefix: '', headers: { Authorization: 'Bearer fixed' } },
    connection: {
      url: upstream.url,
      prefix: '',
      auth: {
        type: 'oauth',
        clientId: MADE_CLIENT.id,
        clientSecret: MADE_CLIENT.secret,
        resource: false,
        authorizationServer: {
          authorizationUrl: `${login.issuer}/authorize`,
          tokenUrl: `${login.issuer}/token`,
        },
      },
    },
  };

  async function prepare(
    kind: keyof typeof lines,
    store: (typeof STORES)[number],
    era: Era,
  ): Promise<Runner> {
    const args = await nameInFile(testbed.folder, kind, { bare: lines[kind] });
    const command = runPostern(store, { ...SETTINGS, ...provider.env }, args);
    const server = await testbed.start(command);
    const baseUrl = new URL(server.url).origin;
    if (kind === 'connection') {
      const browser = createBrowser({ person: 'ada', account: 'ada@work' });
      await connect({ baseUrl }, browser, 'bare');
    }
    const logins = createOwnTokenLogins({ request: createHttpRequest(baseUrl) }, provider);
    const call = await createCall(server.url, (await logins.logIn()).access, era);
    const expected = await checkAnswers(call);
    await runWrk(testbed.folder, { call, expected, connections: 32, seconds: plan.warmUpSeconds });
    const contestant: Contestant = { name: kind, label: kind, era, command, isQuick: true };
    return { contestant, server, call, expected };
  }

  try {
    for (const store of STORES) {
      for (const era of ERAS) {
        const runners = [
          await prepare('header', store, era),
          await prepare('connection', store, era),
        ];
        const series = await runRounds(testbed, runners, plan);
        for (const connections of plan.connections) {
          const ratio = computeRatio(series, {
            of: 'connection',
            by: 'header',
            connections,
            measure: 'cpuMicroseconds',
          });
          const figures = series
            .map(computeFigures)
            .filter((row) => row.connections === connections);
          console.log(
            `${store}, ${era}, ${connections}: ${figures.map((row) => `${row.contestant} ${row.flaw ?? `${row.cpuMicroseconds.toFixed(0)} µs`}`).join(', ')}; ${renderGoal(judgeAtMost(MOST, ratio, ' of a fixed header’s'))}`,
          );
        }
        for (const { server } of runners) await server.stop();
      }
    }
  } finally {
    await upstream.stop();
    await login.close();
    await provider.close();
    await testbed.close();
  }
}

const UNLIMITED = '1000000000';
const SETTINGS = {
  OIDC_AUDIENCE: '',
  OAUTH_STATE_SECRET: 'one-secret-for-all-that-is-measured',
  OAUTH_AUTHORIZE_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_CONSENT_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_CALLBACK_RATE_LIMIT_MAX: UNLIMITED,
};
