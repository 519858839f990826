// An authorization server that nobody here wrote: oidc-provider, set up as its documentation says. Environment:
//   BASE        path of the issuer, such as /tenant; empty for none
//   SCOPES      scopes of resources, separated by spaces
//   ACCESS_TTL  seconds that an access token lives
//   REFRESH     no: there are no refresh tokens, and no scope that asks for them
// Below /test it says what happened, for assertions, and withdraws grants as an operator would.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const { BASE = '', SCOPES = '', ACCESS_TTL = '600', REFRESH = 'yes' } = process.env;
const seen = {
  registered: [], documents: [], authorizations: [], tokens: [], errors: [], revoked: [],
};
const grants = new Set();

const configuration = {
  scopes: REFRESH === 'no' ? ['openid'] : ['openid', 'offline_access'],
  findAccount: (ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  cookies: { keys: [crypto.randomUUID()] },
  clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
  pkce: { required: () => true },
  // Every use gives a new refresh token; a second use of an old one ends the grant.
  rotateRefreshToken: true,
  expiresWithSession: () => false,
  ttl: { AccessToken: Number(ACCESS_TTL), AuthorizationCode: 60, RefreshToken: 86400, Grant: 86400, Interaction: 3600, Session: 3600 },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: SCOPES, audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: Number(ACCESS_TTL), jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  // oidc-provider's own dispatcher refuses loopback addresses, where the tests' documents are.
  fetch: (url, { dispatcher, ...options }) => {
    seen.documents.push(String(url));
    return fetch(url, options);
  },
};

function watch(provider) {
  provider.on('grant.saved', (grant) => grants.add(grant.jti));
  provider.on('registration_create.success', (ctx, client) => seen.registered.push(client.metadata()));
  provider.on('authorization.success', (ctx) => seen.authorizations.push(ctx.oidc.params));
  provider.on('authorization.error', (ctx, error) => seen.errors.push({ at: 'authorize', error: error.error, description: error.error_description }));
  provider.on('grant.success', (ctx) => seen.tokens.push({ ...ctx.oidc.params, refreshed: ctx.body.refresh_token }));
  provider.on('grant.error', (ctx, error) => seen.errors.push({ at: ctx.oidc.params?.grant_type, error: error.error, description: error.error_detail }));
  provider.on('grant.revoked', (ctx, id) => seen.revoked.push(id));
  provider.on('server_error', (ctx, error) => console.error(error));
}

async function withdraw(provider) {
  for (const id of grants) {
    await provider.RefreshToken.revokeByGrantId(id);
    await (await provider.Grant.find(id))?.destroy();
  }
}

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const provider = new Provider(`http://127.0.0.1:${server.address().port}${BASE}`, configuration);
  watch(provider);
  const serve = provider.callback();
  server.on('request', async (req, res) => {
    const path = req.url.startsWith(`${BASE}/`) ? req.url.slice(BASE.length) : undefined;
    switch (path) {
      case undefined:
        res.writeHead(404).end();
        break;
      case '/test/seen':
        res.setHeader('content-type', 'application/json').end(JSON.stringify(seen));
        break;
      case '/test/withdraw':
        await withdraw(provider);
        res.writeHead(204).end();
        break;
      default:
        // From the difference oidc-provider learns the path that it is mounted at.
        req.originalUrl = req.url;
        req.url = path;
        serve(req, res);
    }
  });
});
