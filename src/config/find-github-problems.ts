// What cannot go with OIDC_PROVIDER=github, which has no discovery, no key set and no ID tokens.
import { isLoopbackHost } from '../platform/address.ts';
import { idJagSettings } from './groups/id-jag.ts';
import { loginPolicySettings } from './groups/login-policy.ts';
import { isBrokerMode } from './groups/oauth-mode.ts';
import { providerSettings, readProfile } from './groups/provider.ts';
import { providerClientSettings } from './groups/provider-client.ts';
import type { FindProblem } from './problem.ts';
import { isDefault, type Read, type Setting } from './setting.ts';

const isGithub = (read: Read): boolean => readProfile(read).login === 'github';

export const GITHUB_PROBLEM_FINDERS: readonly FindProblem[] = [
  // A line of .env.example at its default asks for nothing.
  (read) =>
    !isGithub(read) &&
    !isDefault(providerSettings.githubUrl, read) &&
    'GITHUB_URL has no use without OIDC_PROVIDER=github. Set OIDC_PROVIDER=github, or remove GITHUB_URL.',

  (read) => {
    const issuer = read(providerSettings.issuer);
    const url = read(providerSettings.githubUrl);
    return (
      isGithub(read) &&
      issuer !== url &&
      `OIDC_ISSUER: ${JSON.stringify(issuer)} cannot work with OIDC_PROVIDER=github, whose issuer is GITHUB_URL (${url}). Remove OIDC_ISSUER; for a GitHub Enterprise Server set GITHUB_URL to its address.`
    );
  },

  // Its access tokens go there, and what it says of users comes from there, with no signature.
  (read) => {
    const url = read(providerSettings.githubUrl);
    const { protocol, hostname, pathname } = new URL(url);
    if (!isGithub(read)) return undefined;
    if (protocol !== 'https:' && !isLoopbackHost(hostname)) {
      return `GITHUB_URL: ${JSON.stringify(url)} is not valid. It must be https, or http on localhost, 127.0.0.1 or [::1].`;
    }
    return (
      pathname !== '/' &&
      `GITHUB_URL: ${JSON.stringify(url)} is not valid. It must be the address of GitHub itself, without a path, for example https://github.example.com.`
    );
  },

  (read, isMissing) =>
    isGithub(read) &&
    isBrokerMode(read) &&
    isMissing(providerClientSettings.secret) &&
    'OAUTH_CLIENT_SECRET is missing: GitHub gives no tokens without the secret of the OAuth app or GitHub App.',

  (read) =>
    isGithub(read) &&
    read(idJagSettings.isEnabled) &&
    read(idJagSettings.issuers).includes(read(providerSettings.githubUrl)) &&
    'ID_JAG=true cannot work with OIDC_PROVIDER=github alone: GitHub makes no such assertions. Name the identity provider that makes them in ID_JAG_ISSUERS, or remove ID_JAG.',

  (read, isMissing) => {
    const useless = isGithub(read) && USELESS.find((setting) => !isMissing(setting));
    return (
      useless &&
      `${useless.variable} has no use with OIDC_PROVIDER=github, which has neither ID tokens nor a userinfo or revocation endpoint: the gateway asks GitHub's API. Remove it.`
    );
  },
];

const USELESS: readonly Setting<unknown>[] = [
  providerSettings.jwksUrl,
  providerClientSettings.revocationUrl,
  loginPolicySettings.groupsClaim,
  loginPolicySettings.followsGroupsOverage,
];
