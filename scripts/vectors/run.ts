// Each group of vectors through both checks of the gateway.
import { generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { Group } from './corpus.ts';
import { explainGroupRefusal, explainVectorRefusal } from './expectation.ts';
import { createTokenChecks, type TokenChecks, type Verdict } from './gateway.ts';
import { importPrivateKey, signToken, spoilSignature } from './signer.ts';

export interface Outcome {
  readonly group: string;
  readonly vectors: number;
  readonly accepted: number;
  readonly refused: number;
  /** Checks made in addition to the vectors, with tokens signed anew. */
  readonly controls: number;
  readonly deviations: readonly string[];
  readonly note: string;
}

/** The vectors of a group, and tokens signed anew with its own key and with one of ours. */
export async function runGroup(group: Group): Promise<Outcome> {
  const groupRefusal = explainGroupRefusal(group);
  const ours = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const shown = group.publicKeys.length > 0 ? group.publicKeys : group.privateKeys;
  const tokenChecks = createTokenChecks([...shown, exportJwk(ours.publicKey, 'control')]);
  const check = createChecks();
  const notes = new Set(groupRefusal === undefined ? [] : [groupRefusal]);
  let accepted = 0;

  for (const vector of group.vectors) {
    const { id, comment, jws, valid } = vector;
    const refusal =
      valid && groupRefusal === undefined ? explainVectorRefusal(group, vector) : groupRefusal;
    if (refusal !== undefined) notes.add(refusal);
    const wanted = valid && refusal === undefined ? 'accepted' : 'signature';
    const said = await tokenChecks.signature(jws);
    if (said === 'accepted') accepted += 1;
    check(`${id} ${comment}: signature`, said, wanted);
    // No payload of a vector holds claims, so that a good one fails there, and only there.
    const claims = wanted === 'accepted' ? 'claims' : 'signature';
    check(`${id} ${comment}: bearer`, await tokenChecks.bearer(jws), claims);
  }

  const made = check.count();
  await checkControl(tokenChecks, check, 'ES256', ours.privateKey, 'control', true);
  for (const [at, jwk] of group.privateKeys.entries()) {
    const key = importPrivateKey(jwk);
    const kid = (shown[at] ?? jwk).kid;
    if (key)
      await checkControl(
        tokenChecks,
        check,
        chooseAlgorithm(jwk, key),
        key,
        kid,
        groupRefusal === undefined,
      );
  }
  return {
    group: group.comment,
    vectors: group.vectors.length,
    accepted,
    refused: group.vectors.length - accepted,
    controls: check.count() - made,
    deviations: check.deviations,
    note: [...notes].join('; '),
  };
}

const FRESH = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  RS384: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  RS512: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS384: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS512: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  'EdDSA Ed25519': () => generateKeyPairSync('ed25519'),
  'EdDSA Ed448': () => generateKeyPairSync('ed448'),
} as const;

/** A fresh key of every accepted algorithm: the vectors have neither EdDSA nor ES384. */
export async function runFreshKeys(): Promise<Outcome> {
  const check = createChecks();
  for (const [name, generate] of Object.entries(FRESH)) {
    const { publicKey, privateKey } = generate();
    const tokenChecks = createTokenChecks([exportJwk(publicKey, name)]);
    const [alg = ''] = name.split(' ');
    await checkControl(tokenChecks, check, alg, privateKey, name, true);
  }
  return {
    group: 'fresh keys of every algorithm',
    vectors: 0,
    accepted: 0,
    refused: 0,
    controls: check.count(),
    deviations: check.deviations,
    note: '',
  };
}

type Check = ReturnType<typeof createChecks>;

async function checkControl(
  tokenChecks: TokenChecks,
  check: Check,
  alg: string,
  key: KeyObject,
  kid: unknown,
  usable: boolean,
): Promise<void> {
  const token = signToken(alg, key, kid);
  check(`${alg} control`, await tokenChecks.bearer(token), usable ? 'accepted' : 'signature');
  check(`${alg} control, spoilt`, await tokenChecks.bearer(spoilSignature(token)), 'signature');
}

function createChecks() {
  const deviations: string[] = [];
  let count = 0;
  function check(what: string, said: Verdict, wanted: Verdict): void {
    count += 1;
    if (said !== wanted) deviations.push(`${what}: ${said}, should be ${wanted}`);
  }
  return Object.assign(check, { deviations, count: () => count });
}

/** The algorithm that the key would be used with if it were valid. */
function chooseAlgorithm({ alg }: JsonWebKey, key: KeyObject): string {
  if (typeof alg === 'string' && alg in FRESH) return alg;
  if (key.asymmetricKeyType === 'rsa') return 'RS256';
  return key.asymmetricKeyDetails?.namedCurve === 'secp521r1' ? 'ES512' : 'ES256';
}

const exportJwk = (key: KeyObject, kid: string): JsonWebKey => ({
  ...key.export({ format: 'jwk' }),
  kid,
});
