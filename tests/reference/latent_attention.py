"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): keys and values of all heads come from one latent of a
token; a part of the key that carries the position comes from the token itself, and all heads share it."""

import torch

from parts import attend, linear, norm, rotate


def attention(w, layer, model, x):
    mla, base = model["mla"], model["rotary_base"]
    batch, sequence, _ = x.shape
    heads = lambda t: t.view(batch, sequence, model["heads"], -1)

    query = norm(w, layer + ".query_norm", model, linear(w, layer + ".query_down", x)) if mla["q_rank"] else x
    q, q_rope = heads(linear(w, layer + ".query_up", query)).split([mla["nope_dim"], mla["rope_dim"]], dim=-1)

    latent = norm(w, layer + ".latent_norm", model, linear(w, layer + ".latent_down", x))
    k, v = heads(linear(w, layer + ".latent_up", latent)).split([mla["nope_dim"], mla["v_dim"]], dim=-1)
    k_rope = rotate(linear(w, layer + ".key_rope", x)[:, :, None, :], base).expand(-1, -1, model["heads"], -1)

    q, k = torch.cat((q, rotate(q_rope, base)), dim=-1), torch.cat((k, k_rope), dim=-1)
    return linear(w, layer + ".attention_output", attend(q, k, v, model["causal"]))
