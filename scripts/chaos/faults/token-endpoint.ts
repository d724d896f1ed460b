// The provider's token endpoint stalls.
import { startUpstream } from '../../../test/support/oauth/upstream.ts';
import { parseObject } from '../client/refusals.ts';
import { type Answer, createRequester, type Response } from '../client/requester.ts';
import { createTally, type Tally } from '../client/tally.ts';
import { checkAtMost, checkFact, checkNoneRefused, type Fault } from '../fault.ts';

const CALLS_PER_SECOND = 150;
const TOKEN_REQUESTS_PER_SECOND = 100;
/** After 10 s the gateway gives the provider up. */
const IN_TIME_MS = 11_000;

const stalling: Fault = {
  name: 'token-endpoint-stalls',
  title: 'The token endpoint stops answering, at 100 token requests a second.',
  figure:
    'p99 of /mcp within 20 % of that with an endpoint that answers; 502 within 11 s, or 503 at once.',
  async run(stage) {
    const upstream = stage.closeAtEnd(await startUpstream());
    const issuer = await stage.startIssuer();
    const gateway = await stage.startGateway(issuer, {
      OAUTH_TOKEN_URL: `${upstream.url}/token`,
      OAUTH_TOKEN_RATE_LIMIT_MAX: '1000000',
      OAUTH_TOKEN_GLOBAL_RATE_LIMIT_MAX: '1000000',
      OAUTH_REFRESH_RATE_LIMIT_MAX: '1000000',
      OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX: '1000000',
      OAUTH_REFRESH_GLOBAL_RATE_LIMIT_MAX: '1000000',
    });
    const whole = createTally();
    const requester = stage.closeAtEnd(createRequester(gateway.url, { connections: 2000 }));
    const seconds = stage.choose({ full: 30, short: 1 });

    /** p99 of /mcp while token requests come. */
    async function measureCalls(judge: (response: Response) => 'good' | 'refused' | undefined) {
      const client = await stage.startClient(gateway.url, issuer, { tally: createTally(whole) });
      const calls = stage.startLoad(CALLS_PER_SECOND, client.callAny);
      const tokens = createTally(whole);
      const tokenLoad = stage.startLoad(TOKEN_REQUESTS_PER_SECOND, async () => {
        const start = performance.now();
        recordAnswer(tokens, await requester.send(REFRESH), judge, performance.now() - start);
      });
      await stage.pause(seconds * 1000);
      await calls.stop();
      return { calls: client.tally.percentile(0.99), tokens, tokenLoad };
    }

    upstream.answer((res) =>
      res.writeHead(200, { 'content-type': 'application/json' }).end(TOKENS),
    );
    const before = await measureCalls(judgeAnswered);
    await before.tokenLoad.stop();
    upstream.answer(() => {});
    const meanwhile = await measureCalls(judgeStalled);
    // The last one is given up after its 10 s, which the short form does not wait for.
    if (!stage.isShort) await meanwhile.tokenLoad.stop();
    return {
      tally: whole,
      checks: [
        checkNoneRefused(before.tokens),
        checkAtMost(
          'p99 of /mcp, against an endpoint that answers',
          meanwhile.calls / before.calls,
          1.2,
          'times',
        ),
        ...(stage.isShort
          ? []
          : [checkAtMost('slowest token answer', meanwhile.tokens.slowestMs, IN_TIME_MS)]),
        checkFact('the process still runs', !gateway.hasEnded),
      ],
    };
  },
};

const TOKENS = JSON.stringify({ access_token: 'a', token_type: 'Bearer' });

const REFRESH = {
  method: 'POST',
  path: '/oauth/token',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: 'grant_type=refresh_token&refresh_token=r&client_id=c',
} as const;

/** On a machine with too much else to do, 503 is a true answer, too. */
function judgeAnswered(response: Response): 'good' | 'refused' | undefined {
  if (response.kind === 'answer' && response.status === 200 && response.text === TOKENS) {
    return 'good';
  }
  return isTooMany(response) ? 'refused' : undefined;
}

/** 502 because there is no answer, or 503 because too many wait for one. */
const judgeStalled = (response: Response): 'refused' | undefined =>
  isServerError(response, 502) || isTooMany(response) ? 'refused' : undefined;

const isTooMany = (response: Response): boolean =>
  isServerError(response, 503) && response.headers['retry-after'] !== undefined;

const isServerError = (response: Response, status: number): response is Answer =>
  response.kind === 'answer' &&
  response.status === status &&
  parseObject(response.text)?.error === 'server_error';

function recordAnswer(
  tally: Tally,
  response: Response,
  judge: (response: Response) => 'good' | 'refused' | undefined,
  ms: number,
): void {
  const kind = judge(response);
  if (kind !== undefined) tally.record(kind, ms);
  else tally.recordWrong(`token request: ${JSON.stringify(response).slice(0, 300)}`, ms);
}

export const tokenEndpointFaults: readonly Fault[] = [stalling];
