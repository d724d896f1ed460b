// What the gateway knows of refresh tokens: whose they are and what for. Only their hashes are stored.

import { hashSha256 } from '../../platform/ids.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import { buildOAuthKey, RECORD_VERSION } from '../../store/keys.ts';
import type { RecordsDeps } from '../../store/seal/sealed-records.ts';

/** A grant that a refresh token stands for. */
export interface RefreshGrant {
  readonly clientId: string;
  /** RFC 8707: what the provider was asked to make tokens for. */
  readonly resources: readonly string[];
  /** Stays the same while one refresh token takes the place of another. */
  readonly grantId: string;
}

export interface KnownRefreshToken {
  /** The client's id; undefined for a token from before the gateway knew of it. */
  readonly owner: string | undefined;
  /** Undefined for a token from before this was noted. */
  readonly resources: readonly string[] | undefined;
  /** Undefined for a token that is not known, or from before this was noted. */
  readonly grantId: string | undefined;
  readonly isRevoked: boolean;
}

export interface RefreshTokens {
  find(refreshToken: string): Promise<KnownRefreshToken>;
  isRevoked(refreshToken: string): Promise<boolean>;
  /** Binds a token to its grant, or begins its time anew. */
  bind(refreshToken: string, grant: RefreshGrant): Promise<void>;
  /**
   * Nobody may use it any more, nor adopt it: for as long as a refresh token can live where it was
   * bound here, else for an hour.
   */
  revoke(refreshToken: string, wasBound: boolean): Promise<void>;
  /**
   * The token that took its place at the provider, where its client does not have that one: its
   * access token could not be handed out.
   */
  findSuccessor(refreshToken: string): Promise<string | undefined>;
  keepSuccessor(refreshToken: string, successor: string): Promise<void>;
  forgetSuccessor(refreshToken: string): Promise<void>;
}

/** Clients revoke access tokens too, and anybody can send made-up ones: these must not fill the store. */
const UNBOUND_TOMBSTONE_SECONDS = 3600;

/** As long as an operator may need to mend what is wrong; every try begins it anew. */
const SUCCESSOR_SECONDS = 86_400;

export function createRefreshTokens(
  { store, seal }: RecordsDeps,
  ttlSeconds: number,
): RefreshTokens {
  // Version 0.1.0 writes and compares the bare client id here: what is more lies in other records.
  const buildOwnerKey = (hash: string) => buildOAuthKey('refresh', hash);
  const buildGrantKey = (hash: string) => buildOAuthKey('refresh-grant', hash);
  // A key of its own: a refresh under way at this moment binds the token once more.
  const buildTombstoneKey = (hash: string) => buildOAuthKey('refresh-revoked', hash);
  const buildSuccessorKey = (token: string) =>
    buildOAuthKey('refresh-successor', hashSha256(token));

  const hasTombstone = async (hash: string) =>
    (await store.get(buildTombstoneKey(hash))) !== undefined;

  return {
    isRevoked: (refreshToken) => hasTombstone(hashSha256(refreshToken)),
    async find(refreshToken) {
      const hash = hashSha256(refreshToken);
      const [owner, grant, revoked] = await Promise.all([
        store.get(buildOwnerKey(hash)),
        store.get(buildGrantKey(hash)),
        hasTombstone(hash),
      ]);
      return { owner, ...readGrant(grant), isRevoked: revoked };
    },
    async bind(refreshToken, { clientId, resources, grantId }) {
      const hash = hashSha256(refreshToken);
      const grant = JSON.stringify({ version: RECORD_VERSION, resources, grantId });
      await Promise.all([
        store.set(buildOwnerKey(hash), clientId, ttlSeconds),
        store.set(buildGrantKey(hash), grant, ttlSeconds),
      ]);
    },
    revoke: (refreshToken, wasBound) =>
      store.set(
        buildTombstoneKey(hashSha256(refreshToken)),
        '1',
        wasBound ? ttlSeconds : Math.min(ttlSeconds, UNBOUND_TOMBSTONE_SECONDS),
      ),
    async findSuccessor(refreshToken) {
      const key = buildSuccessorKey(refreshToken);
      const sealed = await store.get(key);
      return sealed === undefined ? undefined : seal.open(key, sealed);
    },
    async keepSuccessor(refreshToken, successor) {
      const key = buildSuccessorKey(refreshToken);
      await store.set(key, seal.seal(key, successor), SUCCESSOR_SECONDS);
    },
    forgetSuccessor: (refreshToken) => store.delete(buildSuccessorKey(refreshToken)),
  };
}

function readGrant(text: string | undefined): Pick<KnownRefreshToken, 'resources' | 'grantId'> {
  const { resources, grantId } = (text === undefined ? undefined : parseObject(text)) ?? {};
  return {
    resources: isStringArray(resources) ? resources : undefined,
    grantId: typeof grantId === 'string' ? grantId : undefined,
  };
}
