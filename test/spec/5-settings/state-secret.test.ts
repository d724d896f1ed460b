// §16: OAUTH_STATE_SECRET on several replicas, and the one that is kept in DATA_DIR.
import { chmod, chown, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { DataDirError } from '../../../src/store/embedded/lock.ts';
import { openEmbeddedStore } from '../../../src/store/embedded/open.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { createLoginSteps, type Question } from '../../support/oauth/login-steps.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const ONE = 'the-first-secret-of-all-the-replicas';
const OTHER = 'another-secret-of-all-the-replicas!!';
const BROKER = {
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'provider-client',
  OAUTH_AUTHORIZATION_URL: 'https://idp.example/authorize',
};

let dataDir: string;
const folder = useFresh(createTemporaryFolder);
beforeEach(() => {
  dataDir = folder.path;
});

describe('OAUTH_STATE_SECRET on two replicas', () => {
  let clock: ManualClock;
  /** Two gateways over one store. */
  async function startTwo(first: string, second: string) {
    clock = manualClock();
    const { log } = collectLog();
    const options = { dataDir, sessionKeyPrefix: 'mcp:session:', clock, log };
    const store = closeAfterTest(await openEmbeddedStore(options));
    const shared = { ...store, close: async () => {} };
    const start = async (secret: string) => {
      const env = { ...BROKER, OAUTH_STATE_SECRET: secret };
      return closeAfterTest(await startGateway({ env, deps: { store: shared, clock } }));
    };
    return [await start(first), await start(second)] as const;
  }

  const warnings = ({ log }: TestGateway) =>
    log.filter(({ level, msg }) => level === 'warn' && msg.includes('OAUTH_STATE_SECRET'));

  async function askOn(gateway: TestGateway): Promise<Question> {
    const steps = createLoginSteps(gateway);
    return steps.ask(await steps.register());
  }

  test('§10 the replica that cannot open a record says so, once in a minute', async () => {
    const [one, other] = await startTwo(ONE, OTHER);
    const question = await askOn(one);
    for (let time = 0; time < 3; time += 1) {
      expect((await createLoginSteps(other).decide(question)).status).toBe(400);
    }
    expect(warnings(other)).toHaveLength(1);
    expect(warnings(other)[0]?.msg).toContain('OAUTH_STATE_SECRET differs');
    clock.advance(59_999);
    await createLoginSteps(other).decide(await askOn(one));
    expect(warnings(other)).toHaveLength(1);
    clock.advance(1);
    await createLoginSteps(other).decide(await askOn(one));
    expect(warnings(other)).toHaveLength(2);
    expect(warnings(one)).toEqual([]);
    expect(JSON.stringify([one.log, other.log])).not.toMatch(/secret-of-all/);
  });

  test('§10 replicas that have both secrets, in whatever order, read each other’s records', async () => {
    const [one, other] = await startTwo(`${ONE},${OTHER}`, `${OTHER},${ONE}`);
    expect((await createLoginSteps(other).decide(await askOn(one))).status).toBe(303);
    expect((await createLoginSteps(one).decide(await askOn(other))).status).toBe(303);
    expect([...warnings(one), ...warnings(other)]).toEqual([]);
  });

  test('§10 what nobody ever stored is no other secret', async () => {
    const [one, other] = await startTwo(ONE, OTHER);
    const { cookie, form } = await askOn(one);
    for (const forged of ['x', 'x=abcdefgh', `${form.question}=abcdefgh`]) {
      const tried = Object.fromEntries(Object.keys(form).map((name) => [name, forged]));
      await createLoginSteps(other).decide({ cookie, form: tried });
    }
    expect(warnings(other)).toEqual([]);
  });
});

describe('seals', () => {
  const seal = createSeal([ONE]);

  test('§10 a sealed text opens in its context, by one of the secrets', () => {
    const sealed = seal.seal('context', 'text');
    expect(seal.open('context', sealed)).toBe('text');
    expect(seal.open('other', sealed)).toBeUndefined();
    expect(createSeal([OTHER, ONE]).open('context', sealed)).toBe('text');
    expect(createSeal([OTHER]).open('context', sealed)).toBeUndefined();
  });

  test('§10 another secret is told from damage', () => {
    const sealed = seal.seal('context', 'text');
    expect(createSeal([OTHER]).namesForeignSecret(sealed)).toBe(true);
    expect(createSeal([OTHER, ONE]).namesForeignSecret(sealed)).toBe(false);
    expect(seal.namesForeignSecret(sealed)).toBe(false);
    expect(seal.namesForeignSecret(`A${sealed.slice(1)}`)).toBe(false);
  });

  test('§10 not a character of a sealed text can be changed', () => {
    const sealed = seal.seal('context', 'text');
    for (let at = 0; at < sealed.length; at += 1) {
      for (const other of 'ABCxyz019-_') {
        if (sealed[at] === other) continue;
        const forged = `${sealed.slice(0, at)}${other}${sealed.slice(at + 1)}`;
        expect(seal.open('context', forged), `${at} ${other}`).toBeUndefined();
      }
    }
  });
});

describe('the secret kept in DATA_DIR', () => {
  const file = () => join(dataDir, 'oauth-state-secret');

  async function startAndClose(): Promise<void> {
    const gateway = await startGateway({ env: { ...BROKER, DATA_DIR: dataDir } });
    await gateway.close();
  }

  async function expectRefused(why: RegExp): Promise<void> {
    const start = startAndClose();
    await expect(start).rejects.toThrow(DataDirError);
    await expect(start).rejects.toThrow(why);
    await expect(start).rejects.toThrow(/^DATA_DIR: .*oauth-state-secret .*OAUTH_STATE_SECRET/);
  }

  test('§10 it is made for its owner only, whole, and stays', async () => {
    await startAndClose();
    expect((await stat(file())).mode & 0o777).toBe(0o600);
    const made = await readFile(file(), 'utf8');
    expect(made).toMatch(/^[\w-]{43}\n$/);
    await startAndClose();
    expect(await readFile(file(), 'utf8')).toBe(made);
    const beside = (await readdir(dataDir)).filter((name) => name.startsWith('oauth'));
    expect(beside).toEqual(['oauth-state-secret']);
  });

  test.each(['', 'x', '\n\n', 'x'.repeat(31), `${'x'.repeat(31)}\n\n\n`])(
    '§10 shorter than 32 bytes is an error: %j',
    async (content) => {
      await writeFile(file(), content, { mode: 0o600 });
      await expectRefused(/holds only \d+ of at least 32 bytes/);
      expect(await readFile(file(), 'utf8')).toBe(content);
    },
  );

  test('§10 32 bytes are enough', async () => {
    await writeFile(file(), 'x'.repeat(32), { mode: 0o640 });
    await startAndClose();
  });

  test.each([0o604, 0o644, 0o666, 0o444, 0o602])(
    '§10 everybody’s (%i) is an error',
    async (mode) => {
      await writeFile(file(), 'x'.repeat(43));
      await chmod(file(), mode);
      await expectRefused(/can be (read|written) by every user/);
    },
  );

  test('§10 a link is an error, wherever it leads', async () => {
    await writeFile(join(dataDir, 'real'), 'x'.repeat(43), { mode: 0o600 });
    for (const target of [join(dataDir, 'real'), 'real', '/nowhere', dataDir]) {
      await symlink(target, file());
      await expectRefused(/is a link/);
      await rm(file());
    }
  });

  test('§10 a file of another user is an error, one of root is not', async () => {
    await writeFile(file(), 'x'.repeat(43), { mode: 0o600 });
    // Only root can give a file away; for everybody else the file stays their own.
    const given = await chown(file(), 12_345, 12_345).then(
      () => true,
      () => false,
    );
    if (given) await expectRefused(/belongs to another user \(uid 12345\)/);
    else await startAndClose();
  });

  test('§10 the folder is free again after the error', async () => {
    await writeFile(file(), 'x', { mode: 0o600 });
    await expectRefused(/holds only 1 of/);
    await rm(file());
    await startAndClose();
  });

  test('§10 with OAUTH_STATE_SECRET nobody looks at the file', async () => {
    await writeFile(file(), 'x', { mode: 0o666 });
    const env = { ...BROKER, DATA_DIR: dataDir, OAUTH_STATE_SECRET: ONE };
    await (await startGateway({ env })).close();
  });
});
