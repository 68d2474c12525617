/*
 * An OpenSSL provider for tests. It lists itself; built with -DWITH_GROUPS it also brings two TLS groups under
 * the names and code points of hybrid post-quantum ones, and built with -DINIT_FAILS it refuses to start.
 *
 * The key exchange behind the groups protects nothing: the shared secret is public key XOR ciphertext.
 */
#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#define SIZE 32
#define ALGORITHM "pqcota-test-kem"

static const OSSL_PARAM *gettable_params(void *provider)
{
    static const OSSL_PARAM params[] = {
        OSSL_PARAM_DEFN(OSSL_PROV_PARAM_NAME, OSSL_PARAM_UTF8_PTR, NULL, 0),
        OSSL_PARAM_DEFN(OSSL_PROV_PARAM_STATUS, OSSL_PARAM_INTEGER, NULL, 0),
        OSSL_PARAM_END,
    };
    return params;
}

static int get_params(void *provider, OSSL_PARAM params[])
{
    OSSL_PARAM *p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_NAME);

    if (p != NULL && !OSSL_PARAM_set_utf8_ptr(p, "provider for tests"))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_STATUS);
    return p == NULL || OSSL_PARAM_set_int(p, 1);
}

#ifdef WITH_GROUPS
typedef struct {
    unsigned char public_key[SIZE];
    int is_set;
} KEY;

static void *key_new(void *provider)
{
    return OPENSSL_zalloc(sizeof(KEY));
}

static void key_free(void *key)
{
    OPENSSL_free(key);
}

static int key_has(const void *key, int selection)
{
    return key != NULL;
}

static void *gen_init(void *provider, int selection, const OSSL_PARAM params[])
{
    static char started;
    return &started;
}

static int gen_set_params(void *context, const OSSL_PARAM params[])
{
    return 1;
}

static const OSSL_PARAM *gen_settable_params(void *context, void *provider)
{
    static const OSSL_PARAM params[] = {
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
        OSSL_PARAM_END,
    };
    return params;
}

static void *gen(void *context, OSSL_CALLBACK *callback, void *argument)
{
    KEY *key = key_new(NULL);

    if (key != NULL && RAND_bytes(key->public_key, SIZE) > 0) {
        key->is_set = 1;
        return key;
    }
    key_free(key);
    return NULL;
}

static void gen_cleanup(void *context)
{
}

static int key_get_params(void *opaque, OSSL_PARAM params[])
{
    KEY *key = opaque;
    OSSL_PARAM *p;

    if ((p = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_BITS)) != NULL && !OSSL_PARAM_set_int(p, SIZE * 8))
        return 0;
    if ((p = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_SECURITY_BITS)) != NULL && !OSSL_PARAM_set_int(p, 192))
        return 0;
    if ((p = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_MAX_SIZE)) != NULL && !OSSL_PARAM_set_int(p, SIZE))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY);
    return p == NULL || OSSL_PARAM_set_octet_string(p, key->public_key, SIZE);
}

static const OSSL_PARAM *key_gettable_params(void *provider)
{
    static const OSSL_PARAM params[] = {
        OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
        OSSL_PARAM_END,
    };
    return params;
}

static int key_set_params(void *opaque, const OSSL_PARAM params[])
{
    KEY *key = opaque;
    const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY);

    if (p == NULL)
        return 1;
    if (p->data_type != OSSL_PARAM_OCTET_STRING || p->data_size != SIZE)
        return 0;
    memcpy(key->public_key, p->data, SIZE);
    key->is_set = 1;
    return 1;
}

static const OSSL_PARAM *key_settable_params(void *provider)
{
    static const OSSL_PARAM params[] = {
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
        OSSL_PARAM_END,
    };
    return params;
}

static void *key_dup(const void *opaque, int selection)
{
    KEY *copy = key_new(NULL);

    if (copy != NULL)
        *copy = *(const KEY *)opaque;
    return copy;
}

static const OSSL_DISPATCH key_functions[] = {
    { OSSL_FUNC_KEYMGMT_NEW, (void (*)(void))key_new },
    { OSSL_FUNC_KEYMGMT_FREE, (void (*)(void))key_free },
    { OSSL_FUNC_KEYMGMT_HAS, (void (*)(void))key_has },
    { OSSL_FUNC_KEYMGMT_DUP, (void (*)(void))key_dup },
    { OSSL_FUNC_KEYMGMT_GEN_INIT, (void (*)(void))gen_init },
    { OSSL_FUNC_KEYMGMT_GEN_SET_PARAMS, (void (*)(void))gen_set_params },
    { OSSL_FUNC_KEYMGMT_GEN_SETTABLE_PARAMS, (void (*)(void))gen_settable_params },
    { OSSL_FUNC_KEYMGMT_GEN, (void (*)(void))gen },
    { OSSL_FUNC_KEYMGMT_GEN_CLEANUP, (void (*)(void))gen_cleanup },
    { OSSL_FUNC_KEYMGMT_GET_PARAMS, (void (*)(void))key_get_params },
    { OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, (void (*)(void))key_gettable_params },
    { OSSL_FUNC_KEYMGMT_SET_PARAMS, (void (*)(void))key_set_params },
    { OSSL_FUNC_KEYMGMT_SETTABLE_PARAMS, (void (*)(void))key_settable_params },
    { 0, NULL },
};

typedef struct {
    const KEY *key;
} KEM;

static void *kem_new(void *provider)
{
    return OPENSSL_zalloc(sizeof(KEM));
}

static void kem_free(void *kem)
{
    OPENSSL_free(kem);
}

static int kem_init(void *kem, void *key, const OSSL_PARAM params[])
{
    ((KEM *)kem)->key = key;
    return key != NULL && ((KEY *)key)->is_set;
}

static void combine(unsigned char *secret, const unsigned char *one, const unsigned char *other)
{
    for (int i = 0; i < SIZE; i++)
        secret[i] = one[i] ^ other[i];
}

static int encapsulate(void *kem, unsigned char *out, size_t *out_length, unsigned char *secret, size_t *secret_length)
{
    *out_length = SIZE;
    *secret_length = SIZE;
    if (out == NULL)
        return 1;
    if (RAND_bytes(out, SIZE) <= 0)
        return 0;
    combine(secret, ((KEM *)kem)->key->public_key, out);
    return 1;
}

static int decapsulate(void *kem, unsigned char *secret, size_t *secret_length, const unsigned char *in, size_t length)
{
    *secret_length = SIZE;
    if (secret == NULL)
        return 1;
    if (length != SIZE)
        return 0;
    combine(secret, ((KEM *)kem)->key->public_key, in);
    return 1;
}

static const OSSL_DISPATCH kem_functions[] = {
    { OSSL_FUNC_KEM_NEWCTX, (void (*)(void))kem_new },
    { OSSL_FUNC_KEM_FREECTX, (void (*)(void))kem_free },
    { OSSL_FUNC_KEM_ENCAPSULATE_INIT, (void (*)(void))kem_init },
    { OSSL_FUNC_KEM_ENCAPSULATE, (void (*)(void))encapsulate },
    { OSSL_FUNC_KEM_DECAPSULATE_INIT, (void (*)(void))kem_init },
    { OSSL_FUNC_KEM_DECAPSULATE, (void (*)(void))decapsulate },
    { 0, NULL },
};

static const OSSL_ALGORITHM key_algorithms[] = {
    { ALGORITHM, "provider=test", key_functions, "key of a test group" },
    { NULL, NULL, NULL, NULL },
};

static const OSSL_ALGORITHM kem_algorithms[] = {
    { ALGORITHM, "provider=test", kem_functions, "key encapsulation of a test group" },
    { NULL, NULL, NULL, NULL },
};

static const OSSL_ALGORITHM *query(void *provider, int operation, int *no_cache)
{
    *no_cache = 0;
    if (operation == OSSL_OP_KEYMGMT)
        return key_algorithms;
    return operation == OSSL_OP_KEM ? kem_algorithms : NULL;
}

static int announce(const char *group, unsigned int code_point, OSSL_CALLBACK *callback, void *argument)
{
    unsigned int security_bits = 192, is_kem = 1;
    int min_tls = 0x0304, max_tls = 0, min_dtls = -1, max_dtls = -1;
    OSSL_PARAM params[] = {
        OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME, (char *)group, strlen(group) + 1),
        OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME_INTERNAL, (char *)group, strlen(group) + 1),
        OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_ALG, ALGORITHM, sizeof(ALGORITHM)),
        OSSL_PARAM_uint(OSSL_CAPABILITY_TLS_GROUP_ID, &code_point),
        OSSL_PARAM_uint(OSSL_CAPABILITY_TLS_GROUP_SECURITY_BITS, &security_bits),
        OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MIN_TLS, &min_tls),
        OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MAX_TLS, &max_tls),
        OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MIN_DTLS, &min_dtls),
        OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MAX_DTLS, &max_dtls),
        OSSL_PARAM_uint(OSSL_CAPABILITY_TLS_GROUP_IS_KEM, &is_kem),
        OSSL_PARAM_END,
    };
    return callback(params, argument);
}

static int get_capabilities(void *provider, const char *capability, OSSL_CALLBACK *callback, void *argument)
{
    if (OPENSSL_strcasecmp(capability, "TLS-GROUP") != 0)
        return 0;
    return announce("X25519MLKEM768", 0x11ec, callback, argument)
        && announce("X25519Kyber768Draft00", 0x6399, callback, argument);
}
#endif

static const OSSL_DISPATCH provider_functions[] = {
    { OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, (void (*)(void))gettable_params },
    { OSSL_FUNC_PROVIDER_GET_PARAMS, (void (*)(void))get_params },
#ifdef WITH_GROUPS
    { OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query },
    { OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))get_capabilities },
#endif
    { 0, NULL },
};

int OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **context)
{
#ifdef INIT_FAILS
    return 0;
#else
    *out = provider_functions;
    *context = (void *)handle;
    return 1;
#endif
}
