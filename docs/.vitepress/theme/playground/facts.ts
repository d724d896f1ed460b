// What the gateway says of itself (/site.json).
import { withBase } from 'vitepress';

export interface LogInFacts {
  readonly provider: string;
  readonly mode: 'broker' | 'proxy';
  /** False where the gateway only checks tokens from elsewhere. */
  readonly isOffered: boolean;
  readonly clientId: string;
  /** Undefined where there is no operators' page. */
  readonly operatorsClientId?: string;
  readonly redirectUri: string;
}

export interface PublicTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
}

export interface Facts {
  readonly name: string;
  readonly version: string;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly logo?: string;
  /** Undefined where nobody has to log in. */
  readonly login?: LogInFacts;
  /** Where users connect servers that want a login of theirs; undefined where none does. */
  readonly connectionsUrl?: string;
  /** What each address costs a model; absent where there is one address. */
  readonly pathsUrl?: string;
  readonly tools?: readonly PublicTool[];
}

let loading: Promise<Facts> | undefined;

/** Once for all components. @throws Error in words for the user. */
export function loadFacts(): Promise<Facts> {
  loading ??= fetchFacts().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function fetchFacts(): Promise<Facts> {
  const answer = await fetch(withBase('/site.json'), { cache: 'no-store' });
  if (!answer.ok) throw new Error(`/site.json answered ${answer.status}.`);
  return answer.json();
}
