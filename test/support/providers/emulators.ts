// Every provider that is emulated, by the name that the lab and the tests call it by.
import { AUTH0 } from './auth0.ts';
import { COGNITO } from './cognito.ts';
import { DEX } from './dex.ts';
import { ENTRA } from './entra.ts';
import { GITHUB, GITHUB_APP } from './github.ts';
import { GITLAB } from './gitlab.ts';
import { GOOGLE } from './google.ts';
import type { Habits } from './habits.ts';
import { HYDRA } from './hydra.ts';
import { KEYCLOAK } from './keycloak.ts';
import { OKTA } from './okta.ts';
import { SLACK } from './slack.ts';

export const EMULATED: ReadonlyMap<string, Habits> = new Map([
  ['google', GOOGLE],
  ['github', GITHUB],
  ['github-app', GITHUB_APP],
  ['gitlab', GITLAB],
  ['entra', ENTRA],
  ['okta', OKTA],
  ['auth0', AUTH0],
  ['cognito', COGNITO],
  ['slack', SLACK],
  ['keycloak', KEYCLOAK],
  ['hydra', HYDRA],
  ['dex', DEX],
]);
