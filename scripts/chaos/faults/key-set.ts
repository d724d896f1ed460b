// The provider's key set is gone, wrong, slow, or changes all the time.
import type { Behaviour } from '../../../test/support/oauth/issuer.ts';
import { createUsers } from '../client/users.ts';
import { checkAtMost, checkCount, checkFact, checkNoneRefused, type Fault } from '../fault.ts';
import { startTcpProxy } from '../servers/tcp-proxy.ts';

const RATE_PER_SECOND = 150;
/** A fetch is due at once for a token whose key is not known, at most every 2 s. */
const COOL_DOWN_MS = 2000;
/** A fetch that hangs is given up. */
const FETCH_MS = 5000;

/** The provider's answers instead of its keys, without delay. */
const QUICK: readonly Behaviour[] = ['down', 'error', 'garbage', 'no set', 'empty', 'redirect'];
/** Slow answers. */
const TARDY: readonly Behaviour[] = ['huge', 'slow'];

const gone: Fault = {
  name: 'keys-gone',
  title:
    'The key set endpoint is down, slow, answers 500, garbage, another object, 10 MB, a redirect; meanwhile a key is added.',
  figure: 'No valid token gets a 401. Known keys go on working; a token of the new key gets 503.',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const gateway = await stage.startGateway(issuer, {});
    const client = await stage.startClient(gateway.url, issuer);
    issuer.behave('down');
    // The key of another algorithm is added while nobody can see it.
    const users = await createUsers(issuer, 'ES256');
    const load = stage.startLoad(RATE_PER_SECOND, client.callAny);
    const newKeyClient = await stage.startClient(gateway.url, issuer, {
      sessions: 0,
      tally: client.tally,
      users,
    });
    newKeyClient.allow('keys');
    const newKeyLoad = stage.startLoad(10, newKeyClient.callStateless);
    const behaviours = stage.isShort ? QUICK : [...QUICK, ...TARDY];
    for (const behaviour of behaviours) {
      issuer.behave(behaviour);
      await stage.pause(stage.choose({ full: 75_000, short: 500 }));
    }
    await newKeyLoad.stop();
    issuer.behave('ok');
    const start = performance.now();
    while ((await newKeyClient.callStateless()) !== 'good') await stage.pause(50);
    const recoveryMs = performance.now() - start;
    await load.stop();
    await client.checkSessions();
    return {
      tally: client.tally,
      recoveryMs,
      checks: [
        checkCount('redirects followed', issuer.fetches.elsewhere, 0),
        checkAtMost('slowest answer', client.tally.slowestMs, FETCH_MS + COOL_DOWN_MS + 500),
        checkAtMost('the new key works', recoveryMs, FETCH_MS + COOL_DOWN_MS),
        checkFact('the process still runs', !gateway.hasEnded),
      ],
    };
  },
};

const rotating: Fault = {
  name: 'keys-rotating',
  title: '100 key rotations under load, one every 2.5 s; the set keeps the last three keys.',
  figure: 'No 401 and no refusal for a token whose key is in the set.',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const users = await createUsers(issuer);
    const gateway = await stage.startGateway(issuer, {});
    const client = await stage.startClient(gateway.url, issuer, { users });
    const load = stage.startLoad(RATE_PER_SECOND, client.callAny);
    const fetchesBefore = issuer.fetches.keys;
    const start = performance.now();
    const rotations = stage.choose({ full: 100, short: 2 });
    for (let count = 0; count < rotations; count += 1) {
      const earlier = issuer.keys.slice(-2);
      await issuer.rotate();
      issuer.keys = [...earlier, ...issuer.keys];
      await users.renew(3);
      await stage.pause(stage.isShort ? 1200 : 2500);
    }
    await load.stop();
    await client.checkSessions();
    const fetches = issuer.fetches.keys - fetchesBefore;
    // Forged tokens name a key that is no longer in the set, again and again.
    const mostFetches = Math.ceil((performance.now() - start) / COOL_DOWN_MS);
    return {
      tally: client.tally,
      checks: [
        checkFact(
          `at most ${mostFetches} fetches, one every 2 s`,
          fetches <= mostFetches,
          String(fetches),
        ),
        checkNoneRefused(client.tally),
        // A token that is newer than the last fetch waits for the next one.
        checkAtMost('slowest answer', client.tally.slowestMs, COOL_DOWN_MS + 500),
      ],
    };
  },
};

const cold: Fault = {
  name: 'cold-start',
  title: '2,000 first requests at once at a process that has just begun to listen.',
  figure: 'One fetch of the key set.',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const users = await createUsers(issuer);
    const address = stage.closeAtEnd(await startTcpProxy(Number(new URL(issuer.url).port)));
    // The fetch that begins with the process is still under way when the requests come.
    address.behave({ kind: 'latency', ms: 3000 });
    const gateway = await stage.startGateway(issuer, {
      OIDC_JWKS_URL: `http://127.0.0.1:${address.port}/jwks`,
    });
    const atOnce = stage.choose({ full: 2000, short: 500 });
    const client = await stage.startClient(gateway.url, issuer, {
      sessions: 0,
      connections: atOnce,
      users,
    });
    await Promise.all(Array.from({ length: atOnce }, client.callStateless));
    return {
      tally: client.tally,
      checks: [
        checkCount('fetches of the key set', issuer.fetches.keys, 1),
        checkNoneRefused(client.tally),
      ],
    };
  },
};

export const keySetFaults: readonly Fault[] = [gone, rotating, cold];
