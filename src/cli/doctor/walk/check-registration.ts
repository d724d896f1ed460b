// RFC 7591, and client ID metadata documents: how clients become known.
import { type Finding, failure, ok, unknown, warning } from '../finding.ts';
import type { Registration } from './register.ts';
import type { Walk } from './walk.ts';

const CHECK = 'registration';

export async function checkRegistration(walk: Walk): Promise<readonly Finding[]> {
  const found = (await walk.readServerMetadata()).find(({ document }) => document !== undefined);
  if (found?.document === undefined) return [];
  const registration = await walk.register();
  const offersDocuments = found.document.client_id_metadata_document_supported === true;
  return [
    registration === undefined
      ? warning(CHECK, 'The metadata names no registration_endpoint.', {
          why: 'Clients that register by themselves need a client ID instead. A Postern gateway always names one.',
          remedy:
            'check that this is the gateway, and that no proxy in front changes the document.',
        })
      : judge(registration),
    ...judgeSchemes(registration),
    offersDocuments
      ? ok('client-documents', 'Clients may also come with a client ID metadata document.')
      : ok(
          'client-documents',
          'Client ID metadata documents are not offered, so clients register instead.',
          {
            why: 'They are offered where CIMD_ALLOWED_HOSTS names hosts and the gateway reaches one of them.',
          },
        ),
  ];
}

function judge(registration: Registration): Finding {
  switch (registration.kind) {
    case 'registered':
      return ok(
        CHECK,
        `Clients can register: this check did, as "postern doctor" (${registration.clientId}), which has no rights and is forgotten by itself.`,
      );
    case 'token-needed':
      return warning(
        CHECK,
        'Registration needs a token (DCR_ACCESS_TOKEN), which few clients send.',
        {
          setting: 'DCR_ACCESS_TOKEN',
          remedy:
            'remove it to let clients register themselves, or give each client a client ID that you registered.',
        },
      );
    case 'limited':
      return unknown(
        CHECK,
        'whether clients can register: the gateway has received too many registrations (429).',
        registration.advice,
      );
    case 'refused':
      return failure(CHECK, `Clients cannot register: ${registration.said}.`, {
        remedy: "the gateway's log says why.",
      });
  }
}

function judgeSchemes(registration: Registration | undefined): readonly Finding[] {
  if (registration?.kind !== 'registered' || registration.refusedSchemes === undefined) return [];
  return [
    warning(
      'registration.schemes',
      `Editors that are called back by a scheme of their own (cursor://) cannot register: ${registration.refusedSchemes}`,
      {
        setting: 'OAUTH_REDIRECT_SCHEMES',
        remedy:
          'list the schemes: OAUTH_REDIRECT_SCHEMES=cursor,vscode. Or set OAUTH_MODE=broker, which allows them.',
      },
    ),
  ];
}
