// The embedded store: the disk is full, and the process is killed.
import { execFileSync } from 'node:child_process';
import { freePort } from '../../../test/support/gateway/ports.ts';
import { makeFolder, type RunningPostern } from '../../../test/support/gateway/process.ts';
import { checkAtMost, checkFact, type Fault } from '../fault.ts';
import { measureReadiness, measureRecovery } from '../recovery.ts';

const RATE_PER_SECOND = 150;

const diskFull: Fault = {
  name: 'disk-full',
  title: 'The disk of DATA_DIR is full (no file may grow), then has room again.',
  figure: 'What has to be written is refused, and nothing else; good again at once.',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const gateway = await stage.startGateway(issuer, {});
    const client = await stage.startClient(gateway.url, issuer);
    const load = stage.startLoad(RATE_PER_SECOND, client.callAny);
    await stage.pause(500);
    client.allow('store');
    limitFiles(gateway, '8192');
    await stage.pause(stage.choose({ full: 20_000, short: 2000 }));
    const saysWhy = gateway.log().some(({ level }) => level === 'error');
    limitFiles(gateway, 'unlimited');
    const [recoveryMs, readyMs] = await Promise.all([
      measureRecovery(stage, client),
      measureReadiness(stage, gateway.url, true),
    ]);
    await load.stop();
    await client.checkSessions();
    return {
      tally: client.tally,
      recoveryMs,
      checks: [
        checkFact('the process still runs', !gateway.hasEnded),
        checkFact('something was refused', client.tally.count('refused') > 0),
        checkFact('the log says so', saysWhy),
        checkAtMost('ready again', readyMs, 2000),
      ],
    };
  },
};

const killed: Fault = {
  name: 'embedded-killed',
  title: 'kill -9 in the middle of the work, then a start on the same DATA_DIR, twenty times.',
  figure: 'Each session that was opened is there, none that was ended.',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const env = { PORT: String(await freePort()), DATA_DIR: await makeFolder() };
    let gateway = await stage.startGateway(issuer, env);
    const client = await stage.startClient(gateway.url, issuer);
    for (let times = 0; times < stage.choose({ full: 20, short: 2 }); times += 1) {
      const load = stage.startLoad(RATE_PER_SECOND, client.callAny);
      await stage.pause(stage.isShort ? 500 : 2000);
      client.allow('connection');
      gateway.kill('SIGKILL');
      await gateway.ended;
      await load.stop();
      gateway = await stage.startGateway(issuer, env);
      client.allow();
      await client.checkSessions();
    }
    return { tally: client.tally, checks: [] };
  },
};

/** As on a full disk: no file of the process may be longer. */
function limitFiles({ pid }: RunningPostern, limit: string): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${limit}:unlimited`]);
}

export const embeddedFaults: readonly Fault[] = [diskFull, killed];
